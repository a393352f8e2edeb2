/** A license key as people type it, in the form as issued: offline envelopes are encrypted with that one. */

/** A key of the service's own shape in capitals and groups, O read as 0, I and L as 1; any other text without outer spaces. */
export const licenseKeyOf = (typed: string): string => {
  const text = typed.trim()
  const symbols = text.replaceAll(/[- ]/g, "").toUpperCase()
  if (text.length > 64 || !/^[L1I]K[0-9A-TV-Z]{30}$/.test(symbols)) return text
  const body = symbols.slice(2).replaceAll("O", "0").replaceAll(/[IL]/g, "1")
  return `LK-${body.match(/.{5}/g)?.join("-")}`
}
