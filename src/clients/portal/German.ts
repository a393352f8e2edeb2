/** All words of the page in German. */
import type { Texts } from "./English.ts"

const count = (number: number, one: string, many: string) => `${number} ${number === 1 ? one : many}`

export const german: Texts = {
  language: "Deutsch",
  title: "Ihre Lizenzen",
  wait: "Wird geladen …",
  back: "Zurück",
  cancel: "Abbrechen",
  signOut: "Abmelden",
  switchLanguage: "Sprache",
  help: "Hilfe",
  more: "Mehr anzeigen",
  notLoaded: "Das konnte nicht geladen werden",
  tryAgain: "Erneut versuchen",

  signIn: "Anmelden",
  byMail: "Mit Ihrer E-Mail-Adresse",
  address: "E-Mail-Adresse",
  sendLink: "Link zusenden",
  sending: "Wird gesendet …",
  linkSent: "Wenn zu dieser Adresse Lizenzen gehören, ist ein Link unterwegs. Er gilt einmal und 15 Minuten lang.",
  byKey: "Mit einem Lizenzschlüssel",
  licenseKey: "Lizenzschlüssel",
  keyHint: "So, wie Sie ihn erhalten haben. Groß- und Kleinschreibung und Bindestriche sind egal.",
  showLicense: "Meine Lizenz anzeigen",

  linkTitle: "Sie haben einen Anmeldelink geöffnet",
  linkText: "Weiter zu Ihren Lizenzen auf diesem Gerät.",
  linkContinue: "Weiter",
  linkInvalid: "Dieser Link gilt nicht",
  linkInvalidText: "Er wurde schon benutzt oder ist älter als 15 Minuten. Fordern Sie einen neuen an.",
  newLink: "Neuen Link anfordern",
  stillSignedIn: "Sie sind auf diesem Gerät noch angemeldet.",

  licenses: "Lizenzen",
  noLicenses: "Keine Lizenzen",
  noLicensesText:
    "Zu dieser Adresse gehört keine Lizenz mehr. Melden Sie sich ab, und mit einem Lizenzschlüssel oder einer anderen Adresse wieder an.",
  keyEnds: (last4) => `Schlüssel endet auf ${last4}`,
  status: {
    active: "Aktiv",
    grace_period: "Abgelaufen, läuft noch",
    suspended: "Ausgesetzt",
    expired: "Abgelaufen",
    revoked: "Widerrufen"
  },
  statusText: {
    grace_period: "Verlängern Sie sie, damit die Anwendungen weiter funktionieren.",
    suspended: "Die Anwendungen funktionieren erst wieder, wenn der Anbieter die Aussetzung aufhebt.",
    expired: "Die Anwendungen funktionieren erst wieder, wenn sie verlängert ist.",
    revoked: "Der Anbieter hat diese Lizenz zurückgezogen. Die Anwendungen funktionieren damit nicht."
  },
  kinds: {
    perpetual: "Unbefristete Lizenz",
    time_limited: "Befristete Lizenz",
    subscription: "Abonnement",
    trial: "Testlizenz",
    consumption: "Lizenz nach Verbrauch"
  },
  expires: "Läuft ab",
  never: "Nie",
  firstUse: "Steht ab der ersten Nutzung fest",
  worksUntil: "Läuft weiter bis",
  starts: "Beginnt",
  updatesUntil: "Updates bis",

  devices: "Geräte",
  devicesUsed: (used, limit) => `${used} von ${count(limit, "Gerät", "Geräten")} in Gebrauch`,
  devicesUnlimited: (used) => `${count(used, "Gerät", "Geräte")} in Gebrauch`,
  containersUsed: (used, limit) =>
    limit === 0
      ? `${used} Container in Gebrauch`
      : `${used} von ${count(limit, "Container", "Containern")} in Gebrauch`,
  newestShown: (shown) => `Hier stehen nur die neuesten ${shown}.`,
  noDevices: "Kein Gerät benutzt diese Lizenz.",
  unnamedDevice: "Gerät ohne Namen",
  lastSeen: (day) => `Zuletzt benutzt am ${day}`,
  heldUntil: (day) => `Deaktiviert, aber der Platz ist bis ${day} belegt: Das Gerät kann offline laufen`,
  deactivate: "Deaktivieren",
  deactivateDevice: (name) => `${name} deaktivieren`,
  deactivateTitle: (name) => `${name} deaktivieren?`,
  deactivateText:
    "Die Anwendung darauf läuft dann nicht mehr mit dieser Lizenz, und der Platz wird für ein anderes Gerät frei. Hat das Gerät eine Lizenzdatei für offline, geschieht beides erst, wenn diese endet.",
  deactivated: (name) => `${name} ist deaktiviert.`,

  seats: "Plätze",
  seatsUsed: (used, limit) => `${used} von ${count(limit, "Platz", "Plätzen")} in Gebrauch`,
  noSeats: "Zurzeit benutzt niemand einen Platz.",
  seatUntil: (instant) => `Belegt bis ${instant}`,
  borrowedUntil: (instant) => `Ausgeliehen bis ${instant}`,

  newKey: "Lizenzschlüssel",
  newKeyText:
    "Ist der Schlüssel verloren, oder kennen ihn andere? Fordern Sie einen neuen an. Er geht an die E-Mail-Adresse dieser Lizenz.",
  newKeyAsk: "Neuen Schlüssel anfordern",
  newKeyTitle: "Lizenzschlüssel ersetzen?",
  newKeyWarning:
    "Der bisherige Schlüssel gilt sofort nicht mehr, auf keinem Gerät. Der neue kommt per E-Mail; geben Sie ihn in der Anwendung wieder ein.",
  newKeyConfirm: "Schlüssel ersetzen",
  newKeySent: "Der neue Schlüssel ist per E-Mail unterwegs.",
  newKeySignIn: "Der neue Schlüssel ist per E-Mail unterwegs. Melden Sie sich damit an.",

  features: "Was sie enthält",
  feature: {
    included: "Enthalten",
    used: (used, limit) => `${used} von ${limit} verbraucht`,
    usedUnlimited: (used) => `${used} verbraucht`,
    until: (day) => `Bis ${day}`,
    resets: (day) => `Beginnt neu am ${day}`,
    extra: (left) => `${left} zusätzlich übrig`,
    beyond: (amount) => `${amount} über der Grenze`
  },

  airGap: "Rechner ohne Internet",
  airGapText:
    "Lizenzieren Sie einen Rechner ohne Netz: Bringen Sie seine Anfrage hierher, und nehmen Sie die Lizenzdatei mit zurück.",
  airGapStart: "Einen solchen Rechner lizenzieren",
  requestStep: "1. Die Anfrage des Rechners",
  requestText: "Die Anwendung auf dem Rechner zeigt einen Code oder speichert eine Datei.",
  chooseFile: "Datei oder Bild auswählen",
  scan: "Code scannen",
  stopScanning: "Scannen beenden",
  scanning: "Halten Sie die Kamera auf den Code.",
  noCamera: "Die Kamera ist nicht verfügbar. Fotografieren Sie den Code, und wählen Sie das Bild als Datei aus.",
  notRead:
    "In dieser Datei ist keine Anfrage. Wählen Sie die Datei, die die Anwendung gespeichert hat, oder ein scharfes Bild ihres Codes.",
  requestOf: (name) => `Anfrage von ${name}`,
  requestRead: "Die Anfrage ist gelesen.",
  keyStep: "2. Der Lizenzschlüssel",
  keyText: "Damit wird die Lizenzdatei verschlossen. Er wird nicht gespeichert.",
  createFile: "Lizenzdatei erstellen",
  answerStep: "3. Zum Rechner bringen",
  answerText:
    "Scannen Sie den Code mit der Kamera des Rechners, oder kopieren Sie die Datei dorthin, und öffnen Sie sie in der Anwendung.",
  download: "Lizenzdatei speichern",
  codeName: "Die Lizenzdatei als QR-Code",
  tooLarge: "Die Lizenzdatei ist zu groß für einen Code: Speichern Sie sie als Datei.",
  another: "Weiteren Rechner lizenzieren",

  refused: {
    general: "Das hat nicht geklappt. Versuchen Sie es später noch einmal.",
    UNREACHABLE: "Es gibt keine Verbindung. Versuchen Sie es gleich noch einmal.",
    RATE_LIMITED: (seconds) =>
      `Zu viele Versuche. Versuchen Sie es in ${count(seconds, "Sekunde", "Sekunden")} noch einmal.`,
    ended: "Sie wurden abgemeldet. Melden Sie sich wieder an.",
    NOT_READY: "Das geht gerade nicht. Versuchen Sie es später noch einmal.",
    LICENSE_STATE_CONFLICT: "Das geht nicht mehr. Laden Sie die Seite neu.",
    LICENSE_KEY_INVALID: "Dieser Schlüssel gilt nicht. Prüfen Sie ihn auf Tippfehler.",
    VALIDATION_ERROR: "Prüfen Sie Ihre Eingabe.",
    INVALID_JSON: "Das ist keine Anfrage eines Rechners.",
    NOT_FOUND: "Das gibt es nicht mehr. Laden Sie die Seite neu.",
    PRODUCT_MISMATCH: "Die Anfrage gehört zu einem anderen Produkt.",
    LICENSE_SUSPENDED: "Diese Lizenz ist ausgesetzt.",
    LICENSE_EXPIRED: "Diese Lizenz ist abgelaufen.",
    LICENSE_REVOKED: "Diese Lizenz ist widerrufen.",
    LICENSE_NOT_STARTED: "Diese Lizenz hat noch nicht begonnen.",
    DEVICE_BLACKLISTED: "Dieser Rechner ist gesperrt.",
    DEVICE_NOT_FOUND: "Dieses Gerät gibt es nicht mehr. Laden Sie die Seite neu.",
    DEVICE_STATE_CONFLICT: "Dieses Gerät ist nicht mehr aktiv. Laden Sie die Seite neu.",
    SELF_DEACTIVATION_LIMIT_REACHED: "Sie haben so viele Geräte deaktiviert, wie diese Lizenz in 30 Tagen erlaubt.",
    DEVICE_NOT_ACTIVE: "Dieser Rechner ist nicht aktiv.",
    VM_NOT_ALLOWED: "Diese Lizenz erlaubt keine virtuellen Maschinen.",
    CONTAINER_NOT_ALLOWED: "Diese Lizenz erlaubt keine Container.",
    OFFLINE_NOT_ALLOWED: "Diese Lizenz erlaubt keine Rechner ohne Internet.",
    ACTIVATION_LIMIT_REACHED: "Alle Plätze sind belegt. Deaktivieren Sie zuerst ein Gerät.",
    CONTAINER_LIMIT_REACHED: "Alle Plätze sind belegt. Deaktivieren Sie zuerst ein Gerät.",
    VERSION_UNKNOWN: "Diese Version der Anwendung ist nicht bekannt.",
    VERSION_NOT_ENTITLED: "Diese Lizenz enthält diese Version der Anwendung nicht."
  }
}
