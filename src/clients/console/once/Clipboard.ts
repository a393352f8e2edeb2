/** A browser offers the clipboard to pages of https only, and may refuse it. */
const clipboard = () => navigator.clipboard as Clipboard | undefined

export const hasClipboard = (): boolean => clipboard() !== undefined

export const copy = (text: string, copied: () => void, refused: () => void): void =>
  void (clipboard()?.writeText(text) ?? Promise.reject()).then(copied, refused)
