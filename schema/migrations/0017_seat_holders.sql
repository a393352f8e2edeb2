-- Who takes a floating seat and gives it back moves between active and deactivated with each cycle. No index tells the two apart any
-- more: the next version of such a device goes beside the one before in its page, and no index gets an entry.

-- What a list of one status begins with: the status, but for active and deactivated, which are `either`. A column, for an index on an
-- expression of the status would be written whenever that changes; and a short expression, for each statement parses it.
ALTER TABLE devices ADD COLUMN listed_as text NOT NULL
  GENERATED ALWAYS AS (coalesce(nullif(nullif(status, 'active'), 'deactivated'), 'either')) STORED;
CREATE INDEX devices_listed_page ON devices (license_id, listed_as, holds_slot, created_at DESC, id DESC);
DROP INDEX devices_status_page;

-- A group commit counts the devices that it writes by itself, all at once, and says so by a setting of its transaction.
DROP TRIGGER devices_counted ON devices;
DROP TRIGGER devices_recounted ON devices;
CREATE TRIGGER devices_counted AFTER INSERT ON devices
  FOR EACH ROW WHEN (current_setting('licensing.devices_counted', true) IS DISTINCT FROM 'on')
  EXECUTE FUNCTION keep_status_count();
CREATE TRIGGER devices_uncounted AFTER DELETE ON devices FOR EACH ROW EXECUTE FUNCTION keep_status_count();
CREATE TRIGGER devices_recounted AFTER UPDATE OF status ON devices
  FOR EACH ROW WHEN (
    OLD.status IS DISTINCT FROM NEW.status
    AND current_setting('licensing.devices_counted', true) IS DISTINCT FROM 'on'
  ) EXECUTE FUNCTION keep_status_count();

-- A lease belongs to a device, and that to a license, whose row the same transaction has written. Asking for the license once more
-- cost as much as an index.
ALTER TABLE leases DROP CONSTRAINT leases_license_id_fkey;

ANALYZE devices;
