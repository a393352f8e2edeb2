/** The part of node-postgres that the baseline uses; the package carries no types. */
declare module "pg" {
  interface Query {
    readonly name: string
    readonly text: string
    readonly values: ReadonlyArray<unknown>
  }
  interface Result<Row> {
    readonly rows: Array<Row>
  }
  namespace pg {
    interface PoolClient {
      query<Row>(query: Query | string): Promise<Result<Row>>
      release(): void
    }
    class Pool {
      constructor(options: { readonly connectionString: string; readonly max: number })
      query<Row>(query: Query | string): Promise<Result<Row>>
      connect(): Promise<PoolClient>
    }
  }
  export default pg
}
