/**
 * Tells the other tabs of this browser who is signed in: those in which the reader asked to stay signed in share one sign-in. The
 * messages reach only pages of this origin that are open, and nothing is stored.
 */
type Message =
  /** From a tab without a sign-in. */
  | { readonly kind: "ask" }
  | { readonly kind: "here"; readonly access: string; readonly id?: string }
  | { readonly kind: "renewed"; readonly before: string; readonly access: string }
  | { readonly kind: "end"; readonly access: string; readonly reason?: string }
  /** From the window of a sign-in: what the provider said, which only the tab that began it can use. */
  | { readonly kind: "returned"; readonly parameters: string }
  | { readonly kind: "taken"; readonly state: string }

const channel = new BroadcastChannel("licensing.console")

export const tellTabs = (message: Message): void => channel.postMessage(message)

export const onTabs = (hear: (message: Message) => void): void =>
  channel.addEventListener("message", ({ data }: MessageEvent<Message>) => hear(data))
