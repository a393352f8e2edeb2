/** For the `ref` of an element that takes the place of the one that had the focus. */
export const takeFocus = (element: HTMLElement | null): void => element?.focus()
