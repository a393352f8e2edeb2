/** A license key as people type it, in the form as issued: offline envelopes are encrypted with that one. */

/** A key of the service's own shape in capitals and groups, O read as 0, I and L as 1; any other text without outer spaces. */
export const licenseKeyOf = (typed: string): string => {
  const symbols = typed.replaceAll(/[- ]/g, "").toUpperCase()
  if (typed.length > 64 || !/^[L1I]K[0-9A-Z]{30}$/.test(symbols)) return typed.trim()
  const body = symbols.slice(2).replaceAll("O", "0").replaceAll(/[IL]/g, "1")
  return body.includes("U") ? typed.trim() : `LK-${body.match(/.{5}/g)?.join("-")}`
}
