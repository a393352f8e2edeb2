-- How 0020_vendor_key_characters.sql is applied to a database in use: in parts, so that a license is locked for moments only.

-- step
CREATE FUNCTION shorten_vendor_keys(part integer) RETURNS void LANGUAGE sql SET enable_seqscan TO 'off' AS $$
UPDATE licenses SET
  license_key_prefix = CASE WHEN char_length(license_key_prefix) = 8 THEN left(license_key_prefix, 1) ELSE '' END,
  license_key_last4 = right(license_key_last4,
    CASE WHEN license_key_prefix = '' THEN 2 WHEN char_length(license_key_prefix) < 4 THEN 3 ELSE 4 END)
WHERE license_key_prefix !~ '^LK-[0-9A-HJ-NP-TV-Z]{5}$'
  AND key_hash >= decode(lpad(to_hex(part), 2, '0'), 'hex') AND (part > 251 OR key_hash < decode(lpad(to_hex(part + 4), 2, '0'), 'hex'))
$$;

-- step
SELECT shorten_vendor_keys(0);

-- step
SELECT shorten_vendor_keys(4);

-- step
SELECT shorten_vendor_keys(8);

-- step
SELECT shorten_vendor_keys(12);

-- step
SELECT shorten_vendor_keys(16);

-- step
SELECT shorten_vendor_keys(20);

-- step
SELECT shorten_vendor_keys(24);

-- step
SELECT shorten_vendor_keys(28);

-- step
SELECT shorten_vendor_keys(32);

-- step
SELECT shorten_vendor_keys(36);

-- step
SELECT shorten_vendor_keys(40);

-- step
SELECT shorten_vendor_keys(44);

-- step
SELECT shorten_vendor_keys(48);

-- step
SELECT shorten_vendor_keys(52);

-- step
SELECT shorten_vendor_keys(56);

-- step
SELECT shorten_vendor_keys(60);

-- step
SELECT shorten_vendor_keys(64);

-- step
SELECT shorten_vendor_keys(68);

-- step
SELECT shorten_vendor_keys(72);

-- step
SELECT shorten_vendor_keys(76);

-- step
SELECT shorten_vendor_keys(80);

-- step
SELECT shorten_vendor_keys(84);

-- step
SELECT shorten_vendor_keys(88);

-- step
SELECT shorten_vendor_keys(92);

-- step
SELECT shorten_vendor_keys(96);

-- step
SELECT shorten_vendor_keys(100);

-- step
SELECT shorten_vendor_keys(104);

-- step
SELECT shorten_vendor_keys(108);

-- step
SELECT shorten_vendor_keys(112);

-- step
SELECT shorten_vendor_keys(116);

-- step
SELECT shorten_vendor_keys(120);

-- step
SELECT shorten_vendor_keys(124);

-- step
SELECT shorten_vendor_keys(128);

-- step
SELECT shorten_vendor_keys(132);

-- step
SELECT shorten_vendor_keys(136);

-- step
SELECT shorten_vendor_keys(140);

-- step
SELECT shorten_vendor_keys(144);

-- step
SELECT shorten_vendor_keys(148);

-- step
SELECT shorten_vendor_keys(152);

-- step
SELECT shorten_vendor_keys(156);

-- step
SELECT shorten_vendor_keys(160);

-- step
SELECT shorten_vendor_keys(164);

-- step
SELECT shorten_vendor_keys(168);

-- step
SELECT shorten_vendor_keys(172);

-- step
SELECT shorten_vendor_keys(176);

-- step
SELECT shorten_vendor_keys(180);

-- step
SELECT shorten_vendor_keys(184);

-- step
SELECT shorten_vendor_keys(188);

-- step
SELECT shorten_vendor_keys(192);

-- step
SELECT shorten_vendor_keys(196);

-- step
SELECT shorten_vendor_keys(200);

-- step
SELECT shorten_vendor_keys(204);

-- step
SELECT shorten_vendor_keys(208);

-- step
SELECT shorten_vendor_keys(212);

-- step
SELECT shorten_vendor_keys(216);

-- step
SELECT shorten_vendor_keys(220);

-- step
SELECT shorten_vendor_keys(224);

-- step
SELECT shorten_vendor_keys(228);

-- step
SELECT shorten_vendor_keys(232);

-- step
SELECT shorten_vendor_keys(236);

-- step
SELECT shorten_vendor_keys(240);

-- step
SELECT shorten_vendor_keys(244);

-- step
SELECT shorten_vendor_keys(248);

-- step
SELECT shorten_vendor_keys(252);

-- step
DROP FUNCTION shorten_vendor_keys;
