/** Writes the rows of a trigger for licenses that were inserted without it: the table that finds them by state. */
export const restateLicenses = `
  INSERT INTO license_states (status, created_at, license_id, policy_id, expires_at, notice)
  SELECT status, created_at, id, policy_id, expires_at, license_notice(status, expires_at, expiring_for, expiring_days)
  FROM licenses ON CONFLICT DO NOTHING`
