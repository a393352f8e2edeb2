/** A key, token or secret that is shown only once. */
import { useId, useRef, useState } from "react"
import { takeFocus } from "../look/Focus.ts"
import { copy, hasClipboard } from "./Clipboard.ts"
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
      <button type="button" onClick={() => copy(text, () => setCopied(true), select)}>
        {isCopied ? "Copied" : hasClipboard() ? "Copy" : "Select"}
      </button>
    </div>
  )
}
