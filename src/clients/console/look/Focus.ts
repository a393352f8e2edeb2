/** For the `ref` of an element that takes the place of the one that had the focus. */
export const takeFocus = (element: HTMLElement | null): void => element?.focus()

/** The screen: where nothing has the focus, its list has the arrow keys. */
export const focusContent = (): void => document.getElementById("content")?.focus({ preventScroll: true })
