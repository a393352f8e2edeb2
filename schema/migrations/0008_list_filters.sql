-- Filters of lists that were served by reading the whole list: each with the list's order.
CREATE INDEX api_keys_active_page ON api_keys (is_active, created_at DESC, id DESC) WHERE revoked_at IS NULL;
CREATE INDEX webhook_endpoints_active_page ON webhook_endpoints (is_active, created_at DESC, id DESC);
