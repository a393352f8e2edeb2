/** The code of a new record, in the inputs `name` and `code` of its form. */

/** A new record's code follows its name, until somebody types another one. */
export const suggestCode = (form: HTMLFormElement, typed: EventTarget) => {
  const [name, code] = ["name", "code"].map((field) => form.elements.namedItem(field))
  if (!(name instanceof HTMLInputElement && code instanceof HTMLInputElement)) return
  if (typed === code) code.dataset["own"] = String(code.value !== "")
  if (typed === name && code.dataset["own"] !== "true") code.value = codeOf(name.value)
}

/** A code that was typed before stays, too. */
export const keepOwnCode = (form: HTMLFormElement) => {
  const [name, code] = ["name", "code"].map((field) => form.elements.namedItem(field))
  if (!(name instanceof HTMLInputElement && code instanceof HTMLInputElement)) return
  code.dataset["own"] = String(code.value !== "" && code.value !== codeOf(name.value))
}

const codeOf = (name: string) =>
  name
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[\u0300-\u036f]/g, "")
    .replaceAll(/[^a-z0-9.]+/g, "-")
    .replaceAll(/^[-.]+|[-.]+$/g, "")
    .slice(0, 64)
