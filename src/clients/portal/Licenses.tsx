/** All licenses of an e-mail address. A single one is opened at once. */
import { useEffect, useState } from "react"
import { takeFocus } from "../console/look/Focus.ts"
import { type Answer, ask } from "./Ask.ts"
import { useTexts } from "./Language.tsx"
import { Heading, Nothing, Refusal, Unread, Waiting } from "./Parts.tsx"
import { useAction, useRead, useSession } from "./Session.tsx"
import { Status } from "./Status.tsx"

type Page = Answer<"GET /licenses">
type Row = Page["data"][number]

/** The pages after the first one. */
interface Later {
  readonly rows: ReadonlyArray<Row>
  readonly next: string | undefined
  /** The first row that was read last: the button may be gone, and the focus is there. */
  readonly first: Row | undefined
}

const nextOf = ({ page_info }: Page) => (typeof page_info.next_cursor === "string" ? page_info.next_cursor : undefined)

export const Licenses = () => {
  const texts = useTexts()
  const { leave, showOnly } = useSession()
  const { again, result } = useRead("GET /licenses")
  const [later, setLater] = useState<Later>()
  const more = useAction(() => leave("ended"))
  const answer = result !== undefined && "answer" in result ? result.answer : undefined
  const only = answer?.data.length === 1 && nextOf(answer) === undefined ? answer.data[0] : undefined
  useEffect(() => {
    if (only !== undefined) showOnly(only.id)
  }, [only, showOnly])
  if (result !== undefined && "refused" in result) return <Unread refused={result.refused} onAgain={again} />
  if (answer === undefined || only !== undefined) return <Waiting />
  const next = later === undefined ? nextOf(answer) : later.next
  const rows = [...answer.data, ...(later?.rows ?? [])]
  const readMore = (cursor: string) =>
    void more
      .run(() => ask("GET /licenses", { query: { cursor } }))
      .then(
        (read) =>
          read && setLater({ rows: [...(later?.rows ?? []), ...read.data], next: nextOf(read), first: read.data[0] })
      )
  return (
    <>
      <Heading>{texts.licenses}</Heading>
      {rows.length === 0 && <Nothing title={texts.noLicenses} text={texts.noLicensesText} />}
      <ul className="licenses">
        {rows.map((row) => (
          <li key={row.id}>
            <a className="card" href={`#${row.id}`} ref={row === later?.first ? takeFocus : undefined}>
              <strong>{row.product_name}</strong>
              <Status status={row.status} />
              <small>{texts.keyEnds(row.license_key_last4)}</small>
            </a>
          </li>
        ))}
      </ul>
      <Refusal refused={more.refused} />
      {next !== undefined && (
        <button type="button" aria-disabled={more.isBusy} onClick={() => readMore(next)}>
          {texts.more}
        </button>
      )}
    </>
  )
}
