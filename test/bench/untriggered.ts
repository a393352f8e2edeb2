/** What the triggers keep, for tables that were filled without asking them. */

/** Where licenses are looked for by their state. */
export const restateLicenses = `
  INSERT INTO license_states (status, created_at, license_id, policy_id, expires_at, notice)
  SELECT status, created_at, id, policy_id, expires_at, license_notice(status, expires_at, expiring_for, expiring_days)
  FROM licenses ON CONFLICT DO NOTHING`

/** That, and how many there are of each. */
export const untriggered: ReadonlyArray<string> = [
  restateLicenses,
  ...["products", "customers"].map((table) => `INSERT INTO kept_counts SELECT '${table}', count(*) FROM ${table}`),
  ...["licenses", "devices"].map(
    (table) => `INSERT INTO kept_counts SELECT '${table}.' || status, count(*) FROM ${table} GROUP BY status`
  )
]
