/**
 * The exchange with a computer without a network: its request comes as a file or QR code, and the license file goes back. The file
 * is the offline envelope that the application kit opens.
 */
import { type FormEvent, useRef, useState } from "react"
import { type Answer, ask, type Refused } from "./Ask.ts"
import { Camera } from "./Camera.tsx"
import { useTexts } from "./Language.tsx"
import { BackTo, Card, Field, Heading, Refusal } from "./Parts.tsx"
import { QrCode } from "./QrCode.tsx"
import { type MachineRequest, requestIn, textInFile } from "./qr/RequestFile.ts"
import { useAction, useSession } from "./Session.tsx"
import { textIn } from "./SignIn.tsx"

type Envelope = Answer<"POST /licenses/:license_id/offline">["data"]

export const AirGap = ({ id }: { readonly id: string }) => {
  const texts = useTexts()
  const { entered, leave, rememberKey } = useSession()
  const known = entered?.licenseId === id ? entered.licenseKey : undefined
  const [request, setRequest] = useState<MachineRequest>()
  const [envelope, setEnvelope] = useState<Envelope>()
  const { forget, isBusy, refused, run } = useAction(() => leave("ended"))
  const take = (next: MachineRequest | undefined) => {
    forget()
    setRequest(next)
  }
  const create = (event: FormEvent<HTMLFormElement>) => {
    const license_key = textIn(event, "license_key")
    if (request === undefined) return
    void run(() =>
      ask("POST /licenses/:license_id/offline", { params: { license_id: id }, body: { license_key, request } })
    ).then((answer) => {
      if (answer === undefined) return
      rememberKey({ licenseId: id, licenseKey: license_key })
      setEnvelope(answer.data)
    })
  }
  const restart = () => {
    setRequest(undefined)
    setEnvelope(undefined)
  }
  return (
    <>
      <BackTo path={id} />
      <Heading>{texts.airGap}</Heading>
      {envelope !== undefined ? (
        <LicenseFile envelope={envelope} name={request?.hostname} onRestart={restart} />
      ) : (
        <>
          <RequestCard request={request} onRequest={take} />
          {request !== undefined && (
            <Card heading={texts.keyStep}>
              <form className="form" onSubmit={create}>
                <Field name="license_key" label={texts.licenseKey} hint={texts.keyText} initial={known} />
                <Refusal refused={refused && aboutRequest(refused)} />
                <button type="submit" className="primary" aria-disabled={isBusy}>
                  {texts.createFile}
                </button>
              </form>
            </Card>
          )}
        </>
      )}
    </>
  )
}

/** Of what is sent, only the request can be invalid. */
const aboutRequest = (refused: Refused): Refused =>
  refused.code === "VALIDATION_ERROR" ? { code: "INVALID_JSON" } : refused

const RequestCard = (props: {
  readonly request: MachineRequest | undefined
  readonly onRequest: (request: MachineRequest | undefined) => void
}) => {
  const texts = useTexts()
  const { onRequest, request } = props
  const picker = useRef<HTMLInputElement>(null)
  const [isScanning, setScanning] = useState(false)
  const [isUnreadable, setUnreadable] = useState(false)
  const take = (text: string | undefined) => {
    const found = text === undefined ? undefined : requestIn(text)
    setScanning(false)
    setUnreadable(found === undefined)
    onRequest(found)
  }
  return (
    <Card heading={texts.requestStep} isNext>
      <p>{texts.requestText}</p>
      <div className="choices">
        <button type="button" className={request ? "" : "primary"} onClick={() => picker.current?.click()}>
          {texts.chooseFile}
        </button>
        <button type="button" aria-pressed={isScanning} onClick={() => setScanning(!isScanning)}>
          {isScanning ? texts.stopScanning : texts.scan}
        </button>
      </div>
      <input
        ref={picker}
        hidden
        type="file"
        onChange={({ target }) => {
          const [file] = target.files ?? []
          if (file !== undefined) void textInFile(file).then(take)
          target.value = ""
        }}
      />
      {isScanning && <Camera onText={take} />}
      <p role="status">
        {isUnreadable ? (
          <span className="failed">{texts.notRead}</span>
        ) : (
          request && (request.hostname === undefined ? texts.requestRead : texts.requestOf(request.hostname))
        )}
      </p>
    </Card>
  )
}

const LicenseFile = (props: {
  readonly envelope: Envelope
  readonly name: string | undefined
  readonly onRestart: () => void
}) => {
  const texts = useTexts()
  const text = JSON.stringify(props.envelope)
  const save = () => {
    const link = document.createElement("a")
    // Never revoked: some browsers fetch it long after the click, and it is small.
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }))
    link.download = `license-${(props.name ?? "").replaceAll(/[^\w.-]+/g, "-") || "file"}.json`
    link.click()
  }
  return (
    <Card heading={texts.answerStep} isNext>
      <p>{texts.answerText}</p>
      <button type="button" className="primary" onClick={save}>
        {texts.download}
      </button>
      <QrCode text={text} />
      <button type="button" onClick={props.onRestart}>
        {texts.another}
      </button>
    </Card>
  )
}
