/** A key, token or secret that is shown only once. */
import { useId, useRef, useState } from "react"
import { takeFocus } from "../look/Focus.ts"
import { useUnkept } from "./Unkept.ts"

interface Props {
  readonly label: string
  /** What is lost without a copy, as "the key". */
  readonly what: string
  readonly text: string
}

export const Secret = ({ label, text, what }: Props) => {
  const id = useId()
  const output = useRef<HTMLOutputElement>(null)
  const [isCopied, setCopied] = useState(false)
  useUnkept(what, !isCopied)
  const select = () => output.current !== null && getSelection()?.selectAllChildren(output.current)
  // A browser offers the clipboard to pages of https only, and may refuse it.
  const clipboard = navigator.clipboard as Clipboard | undefined
  const copy = () => void clipboard?.writeText(text).then(() => setCopied(true), select)
  return (
    <div className="once">
      <p id={id} tabIndex={-1} ref={takeFocus}>
        {label} It is shown only here: copy it now.
      </p>
      <output
        ref={output}
        className="secret"
        aria-labelledby={id}
        onCopy={() => setCopied(String(getSelection()).includes(text) || isCopied)}
      >
        {text}
      </output>
      <button type="button" onClick={clipboard === undefined ? select : copy}>
        {isCopied ? "Copied" : clipboard === undefined ? "Select" : "Copy"}
      </button>
    </div>
  )
}
