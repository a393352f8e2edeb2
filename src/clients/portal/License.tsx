/** What a license allows, and what uses it. */
import { Meter } from "../console/look/Meter.tsx"
import { Devices } from "./Devices.tsx"
import { useFormats, useTexts } from "./Language.tsx"
import { NewKey } from "./NewKey.tsx"
import { BackTo, Card, Heading, Newest, Unread, Waiting } from "./Parts.tsx"
import { type LicenseDetails, useRead } from "./Session.tsx"
import { Status } from "./Status.tsx"

export const License = ({ id, isOnly }: { readonly id: string; readonly isOnly: boolean }) => {
  const texts = useTexts()
  const { again, result } = useRead("GET /licenses/:license_id", { license_id: id })
  if (result === undefined) return <Waiting />
  const back = !isOnly && <BackTo path="" />
  if ("refused" in result)
    return (
      <>
        {back}
        <Unread refused={result.refused} onAgain={again} />
      </>
    )
  const license = result.answer.data
  return (
    <>
      {back}
      <Heading>{license.product_name}</Heading>
      <p className="about">
        <Status status={license.status} />
        <span>{texts.kinds[license.license_type]}</span>
        <span>{texts.keyEnds(license.license_key_last4)}</span>
      </p>
      {license.status !== "active" && <p>{texts.statusText[license.status]}</p>}
      <Terms license={license} />
      <Devices license={license} onChanged={again} />
      <Seats license={license} />
      <Features license={license} />
      {license.can_mail_key && <NewKey id={id} onChanged={again} />}
      {license.allow_offline_activation && (
        <Card heading={texts.airGap}>
          <p>{texts.airGapText}</p>
          <a className="button" href={`#${id}/offline`}>
            {texts.airGapStart}
          </a>
        </Card>
      )}
    </>
  )
}

interface Of {
  readonly license: LicenseDetails
}

const Terms = ({ license }: Of) => {
  const texts = useTexts()
  const { day } = useFormats()
  const { access_ends_at, expires_at, license_type, maintenance_expires_at, starts_at } = license
  // Of these types, only a term that has not begun has no end.
  const isUnending = license_type === "perpetual" || license_type === "consumption"
  const isLate = license.status === "grace_period" && access_ends_at !== undefined
  return (
    <dl className="card terms">
      {starts_at !== undefined && <Fact name={texts.starts} value={day(starts_at)} />}
      <Fact
        name={texts.expires}
        value={expires_at !== undefined ? day(expires_at) : isUnending ? texts.never : texts.firstUse}
      />
      {isLate && <Fact name={texts.worksUntil} value={day(access_ends_at)} />}
      {maintenance_expires_at !== undefined && <Fact name={texts.updatesUntil} value={day(maintenance_expires_at)} />}
    </dl>
  )
}

const Fact = ({ name, value }: { readonly name: string; readonly value: string }) => (
  <div>
    <dt>{name}</dt>
    <dd>{value}</dd>
  </div>
)

const Seats = ({ license: { limits, seat_count, seats } }: Of) => {
  const texts = useTexts()
  const { instant } = useFormats()
  const limit = limits.max_floating_users ?? 0
  if (limit === 0) return null
  return (
    <Card heading={texts.seats}>
      <p>{texts.seatsUsed(seat_count, limit)}</p>
      <Meter used={seat_count} of={limit} />
      {seats.length === 0 && <p className="quiet">{texts.noSeats}</p>}
      <ul className="rows">
        {seats.map((seat) => (
          <li key={seat.id}>
            <div className="what">
              <strong>{seat.device_name ?? texts.unnamedDevice}</strong>
              <small>
                {seat.borrowed_until === undefined
                  ? texts.seatUntil(instant(seat.expires_at))
                  : texts.borrowedUntil(instant(seat.borrowed_until))}
              </small>
            </div>
          </li>
        ))}
      </ul>
      <Newest of={seat_count} shown={seats.length} />
    </Card>
  )
}

const Features = ({ license: { features } }: Of) => {
  const texts = useTexts()
  if (features.length === 0) return null
  return (
    <Card heading={texts.features}>
      <ul className="rows">
        {features.map((feature) => (
          <Feature key={feature.feature_id} feature={feature} />
        ))}
      </ul>
    </Card>
  )
}

const Feature = ({ feature }: { readonly feature: LicenseDetails["features"][number] }) => {
  const texts = useTexts()
  const { day, number } = useFormats()
  const { expires_at, extra_credits = 0, max_consumptions, overage = 0, resets_at, rolled_over = 0 } = feature
  const used = feature.total_consumptions
  const limit = max_consumptions === undefined ? undefined : max_consumptions + rolled_over
  const usage =
    limit !== undefined
      ? texts.feature.used(number(used), number(limit))
      : used > 0
        ? texts.feature.usedUnlimited(number(used))
        : texts.feature.included
  return (
    <li>
      <div className="what">
        <strong>{feature.feature_name}</strong>
        {limit !== undefined && <Meter used={used} of={limit} />}
        <small>
          {[
            usage,
            overage > 0 && texts.feature.beyond(number(overage)),
            extra_credits > 0 && texts.feature.extra(number(extra_credits)),
            resets_at !== undefined && texts.feature.resets(day(resets_at)),
            expires_at !== undefined && texts.feature.until(day(expires_at))
          ]
            .filter((part) => part !== false)
            .join(" · ")}
        </small>
      </div>
    </li>
  )
}
