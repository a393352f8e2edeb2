/** All words of the page in English. Another language has the same members (`Texts`). */

const count = (number: number, one: string, many: string) => `${number} ${number === 1 ? one : many}`

export const english = {
  language: "English",
  title: "Your licenses",
  wait: "Loading…",
  back: "Back",
  cancel: "Cancel",
  signOut: "Sign out",
  switchLanguage: "Language",
  help: "Help",
  more: "Show more",
  notLoaded: "This could not be loaded",
  tryAgain: "Try again",

  signIn: "Sign in",
  byMail: "With your e-mail address",
  address: "E-mail address",
  sendLink: "Send me a link",
  sending: "Sending…",
  linkSent: "If licenses belong to this address, a link is on its way. It works once, for 15 minutes.",
  byKey: "With a license key",
  licenseKey: "License key",
  keyHint: "As you received it. Capital letters and dashes do not matter.",
  showLicense: "Show my license",

  linkTitle: "You opened a sign-in link",
  linkText: "Continue to see your licenses on this device.",
  linkContinue: "Continue",
  linkInvalid: "This link does not work",
  linkInvalidText: "It was used already, or it is older than 15 minutes. Ask for a new one.",
  newLink: "Ask for a new link",
  stillSignedIn: "You are still signed in on this device.",

  licenses: "Licenses",
  noLicenses: "No licenses",
  noLicensesText:
    "No license belongs to this address any more. Sign out, and sign in with a license key or another address.",
  keyEnds: (last4: string) => `Key ending in ${last4}`,
  status: {
    active: "Active",
    grace_period: "Expired, still working",
    suspended: "Suspended",
    expired: "Expired",
    revoked: "Revoked"
  },
  statusText: {
    grace_period: "Renew it, so that the applications continue to work.",
    suspended: "The applications do not work until the vendor lifts the suspension.",
    expired: "The applications do not work until it is renewed.",
    revoked: "The vendor has withdrawn this license. The applications do not work with it."
  },
  kinds: {
    perpetual: "Perpetual license",
    time_limited: "Time-limited license",
    subscription: "Subscription",
    trial: "Trial",
    consumption: "License for use"
  },
  expires: "Expires",
  never: "Never",
  firstUse: "Known from the first use on",
  worksUntil: "Works until",
  starts: "Starts",
  updatesUntil: "Updates until",

  devices: "Devices",
  devicesUsed: (used: number, limit: number) => `${used} of ${count(limit, "device", "devices")} in use`,
  devicesUnlimited: (used: number) => `${count(used, "device", "devices")} in use`,
  containersUsed: (used: number, limit: number) =>
    limit === 0
      ? `${count(used, "container", "containers")} in use`
      : `${used} of ${count(limit, "container", "containers")} in use`,
  newestShown: (shown: string) => `Only the newest ${shown} are shown here.`,
  noDevices: "No device uses this license.",
  unnamedDevice: "Device without a name",
  lastSeen: (day: string) => `Last used ${day}`,
  heldUntil: (day: string) => `Deactivated, but its place is taken until ${day}: it may work offline`,
  deactivate: "Deactivate",
  deactivateDevice: (name: string) => `Deactivate ${name}`,
  deactivateTitle: (name: string) => `Deactivate ${name}?`,
  deactivateText:
    "The application on it stops working with this license, and its place is free for another device. If it has a license file for work offline, both happen when that ends.",
  deactivated: (name: string) => `${name} is deactivated.`,

  seats: "Seats",
  seatsUsed: (used: number, limit: number) => `${used} of ${count(limit, "seat", "seats")} in use`,
  noSeats: "No seats are in use.",
  seatUntil: (instant: string) => `Held until ${instant}`,
  borrowedUntil: (instant: string) => `Borrowed until ${instant}`,

  newKey: "License key",
  newKeyText: "If the key was lost or others know it, get a new one. It is sent to the e-mail address of this license.",
  newKeyAsk: "Get a new key",
  newKeyTitle: "Replace the license key?",
  newKeyWarning:
    "The present key stops working at once, on all devices. The new one is sent by e-mail; enter it in the application again.",
  newKeyConfirm: "Replace the key",
  newKeySent: "The new key is on its way by e-mail.",
  newKeySignIn: "The new key is on its way by e-mail. Sign in with it.",

  features: "What it includes",
  feature: {
    included: "Included",
    used: (used: string, limit: string) => `${used} of ${limit} used`,
    usedUnlimited: (used: string) => `${used} used`,
    until: (day: string) => `Until ${day}`,
    resets: (day: string) => `Starts again on ${day}`,
    extra: (left: string) => `${left} extra left`,
    beyond: (amount: string) => `${amount} above the limit`
  },

  airGap: "Computer without internet",
  airGapText: "License a computer that has no network: bring its request here, and take the license file back.",
  airGapStart: "License such a computer",
  requestStep: "1. The computer's request",
  requestText: "The application on that computer shows a code or saves a file.",
  chooseFile: "Choose a file or picture",
  scan: "Scan the code",
  stopScanning: "Stop scanning",
  scanning: "Point the camera at the code.",
  noCamera: "The camera cannot be used. Take a picture of the code and choose it as a file.",
  notRead:
    "No request was found in this file. Choose the file that the application saved, or a sharp picture of its code.",
  requestOf: (name: string) => `Request of ${name}`,
  requestRead: "The request was read.",
  keyStep: "2. The license key",
  keyText: "The license file is locked with it. It is not stored.",
  createFile: "Create the license file",
  answerStep: "3. Take it to the computer",
  answerText: "Scan the code with that computer's camera, or copy the file there, and open it in the application.",
  download: "Save the license file",
  codeName: "The license file as a QR code",
  tooLarge: "The license file is too large for a code: save it as a file.",
  another: "License another computer",

  refused: {
    general: "That did not work. Try again later.",
    UNREACHABLE: "There is no connection. Try again in a moment.",
    RATE_LIMITED: (seconds: number) => `Too many attempts. Try again in ${count(seconds, "second", "seconds")}.`,
    ended: "You were signed out. Sign in again.",
    NOT_READY: "That is not possible at the moment. Try again later.",
    LICENSE_STATE_CONFLICT: "This is not possible any more. Reload the page.",
    LICENSE_KEY_INVALID: "This key is not valid. Check it for typing errors.",
    VALIDATION_ERROR: "Check what you entered.",
    INVALID_JSON: "This is no request of a computer.",
    NOT_FOUND: "This is no longer there. Reload the page.",
    PRODUCT_MISMATCH: "The request is of another product.",
    LICENSE_SUSPENDED: "This license is suspended.",
    LICENSE_EXPIRED: "This license has expired.",
    LICENSE_REVOKED: "This license is revoked.",
    LICENSE_NOT_STARTED: "This license has not started yet.",
    DEVICE_BLACKLISTED: "This computer is blocked.",
    DEVICE_NOT_FOUND: "This device is no longer there. Reload the page.",
    DEVICE_STATE_CONFLICT: "This device is not active any more. Reload the page.",
    SELF_DEACTIVATION_LIMIT_REACHED: "You have deactivated as many devices as this license allows in 30 days.",
    DEVICE_NOT_ACTIVE: "This computer is not active.",
    VM_NOT_ALLOWED: "This license does not allow virtual machines.",
    CONTAINER_NOT_ALLOWED: "This license does not allow containers.",
    OFFLINE_NOT_ALLOWED: "This license does not allow computers without internet.",
    ACTIVATION_LIMIT_REACHED: "All places are taken. Deactivate a device first.",
    CONTAINER_LIMIT_REACHED: "All places are taken. Deactivate a device first.",
    VERSION_UNKNOWN: "This version of the application is not known.",
    VERSION_NOT_ENTITLED: "This license does not include this version of the application."
  }
}

export type Texts = typeof english
