/** The records that a license is returned with, if the query parameter `expand` names them. */
export const expandable = ["product", "policy", "customer"] as const
export type Expandable = (typeof expandable)[number]
