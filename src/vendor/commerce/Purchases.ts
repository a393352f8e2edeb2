/** What orders and subscriptions share: their search by external id, and the refusals of their writes. */
import { Effect } from "effect"
import type { SqlClient, SqlError, Statement } from "effect/sql"
import { CurrentProducts } from "../../access/CurrentActor.ts"
import { ownedBy } from "../../access/productLimits/OwnedRows.ts"
import { refuse, refuseErasing, refuseUnknownId } from "../../contract/api/Failure.ts"
import { constraints, isConcurrentChange } from "../../platform/postgres/queries/Sql.ts"
import { productNotFound } from "../products/Products.ts"

type Noun = "order" | "subscription"

interface Source<A> {
  readonly columns: Statement.Fragment
  readonly decode: (
    rows: Effect.Effect<ReadonlyArray<object>, SqlError.SqlError>
  ) => Effect.Effect<ReadonlyArray<A>, SqlError.SqlError>
}

/** The newest records with an external id, of all external systems and all products of the token. */
export const findByExternalId = <A>(sql: SqlClient.SqlClient, noun: Noun, { columns, decode }: Source<A>) => {
  const table = `${noun}s` as const
  return Effect.fnUntraced(function* (externalId: string, limit: number) {
    return yield* decode(sql`
      SELECT ${columns} FROM ${sql(table)} WHERE external_id = ${externalId} AND ${ownedBy(sql, table, table, yield* CurrentProducts)}
      ORDER BY created_at DESC, id DESC LIMIT ${limit}`)
  }, Effect.orDie)
}

interface Purchase {
  readonly product_id: string
  readonly external_id: string
  readonly customer_id?: string
}

/**
 * The refusals of a write that the database rejects. While the customer is being erased, a trigger rejects linking, unlinking and
 * changes of metadata.
 */
export const refusingWrites =
  (noun: Noun, { customer_id = "", external_id, product_id }: Purchase) =>
  <A, E, R>(write: Effect.Effect<A, E, R>) =>
    write.pipe(
      Effect.catchIf(isConcurrentChange, () => Effect.fail(refuseErasing("customer_id"))),
      constraints({
        [`${noun}s_product_id_fkey`]: () => productNotFound(product_id),
        [`${noun}s_customer_id_fkey`]: () => refuseUnknownId("customer", customer_id, "customer_id"),
        [`${noun}s_external_key`]: () =>
          refuse(
            "DUPLICATE_EXTERNAL_ID",
            `The product has ${noun === "order" ? "an order" : "a subscription"} with the external id ${external_id} of that system already: use that one, or another external_id.`,
            "external_id"
          )
      })
    )
