/** Replaces a license's key. The page never gets the new one: it is mailed. */
import { useState } from "react"
import { ask } from "./Ask.ts"
import { useTexts } from "./Language.tsx"
import { Card, Confirmation } from "./Parts.tsx"
import { useAction, useSession } from "./Session.tsx"

export const NewKey = ({ id, onChanged }: { readonly id: string; readonly onChanged: () => void }) => {
  const texts = useTexts()
  const { leave, rememberKey, signedIn } = useSession()
  const [isAsking, setAsking] = useState(false)
  const [isSent, setSent] = useState(false)
  const { isBusy, refused, run } = useAction(() => leave("ended"))
  const replace = () =>
    void run(async () => {
      const result = await ask("POST /licenses/:license_id/key", { params: { license_id: id } })
      return "refused" in result ? result : { answer: true }
    }).then((isDone) => {
      if (isDone === undefined) return
      // A session that began with the key ends with it.
      if (signedIn.kind === "license") return leave("newKey")
      rememberKey()
      setAsking(false)
      setSent(true)
      onChanged()
    })
  return (
    <Card heading={texts.newKey}>
      <p>{texts.newKeyText}</p>
      <p role="status">{isSent && texts.newKeySent}</p>
      <button type="button" onClick={() => setAsking(true)}>
        {texts.newKeyAsk}
      </button>
      {isAsking && (
        <Confirmation
          title={texts.newKeyTitle}
          text={texts.newKeyWarning}
          action={texts.newKeyConfirm}
          isBusy={isBusy}
          refused={refused}
          onConfirm={replace}
          onClose={() => setAsking(false)}
        />
      )}
    </Card>
  )
}
