/**
 * The part of an address that limits count: the whole of an IPv4 address, or the first 64 bits of an IPv6 address, because a host can
 * choose the other 64. All requests without an address are counted together.
 */
export const networkOf = (address = ""): string => (address.includes(":") ? `${prefixOf(address)}::/64` : address)

const prefixOf = (address: string): string => {
  const [head = "", tail] = address.split("::")
  const groups = head === "" ? [] : head.split(":")
  if (groups.length >= 4) return groups.slice(0, 4).join(":")
  if (tail === undefined) return address
  const after = tail.split(":")
  return [...groups, ...Array<string>(8 - groups.length - after.length).fill("0"), ...after].slice(0, 4).join(":")
}
