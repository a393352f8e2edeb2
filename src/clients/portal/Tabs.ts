/** Tells the other tabs of this browser that its session, which all of them have, began or ended. */
const channel = new BroadcastChannel("licensing.portal")

export const tellTabs = (): void => channel.postMessage(undefined)

export const onTabs = (hear: () => void): (() => void) => {
  channel.addEventListener("message", hear)
  return () => channel.removeEventListener("message", hear)
}
