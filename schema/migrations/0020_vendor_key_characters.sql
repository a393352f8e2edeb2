-- Vendor keys show a quarter of their characters at most. The old prefix tells a key's length: it left twelve characters, and of keys
-- of twelve characters or less nothing.
UPDATE licenses SET
  license_key_prefix = CASE WHEN char_length(license_key_prefix) = 8 THEN left(license_key_prefix, 1) ELSE '' END,
  license_key_last4 = right(license_key_last4,
    CASE WHEN license_key_prefix = '' THEN 2 WHEN char_length(license_key_prefix) < 4 THEN 3 ELSE 4 END)
WHERE license_key_prefix !~ '^LK-[0-9A-HJ-NP-TV-Z]{5}$';
