/** The records that the query parameter `expand` can add to a license. */
export const expandable = ["product", "policy", "customer"] as const
export type Expandable = (typeof expandable)[number]
