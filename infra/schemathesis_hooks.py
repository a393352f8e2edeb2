"""What the document says in words, as code for Schemathesis (docs/TESTING.md): valid requests are made to keep these rules, and a
refusal of a valid request must name one of them."""

import uuid

import schemathesis

# By operationId: the fields whose refusal is a rule between fields, or about a value that no pattern can say.
MACHINE = ["fingerprint", "container_id"]
PERIOD = ["from", "to"]
# Periods, rollover and overage need a quota; max_consumptions is named where a stored period lacks one.
QUOTA = ["max_consumptions", "reset_period", "reset_anchor", "rollover_max", "overage_max"]
VALUE = ["", "string_value", "integer_value", "boolean_value", "datetime_value", "enum_value", "clear"]
RULES = {
    "activateLicense": MACHINE,
    "checkLicense": MACHINE,
    "checkoutFloatingLicense": MACHINE,
    # A reversal has no amount.
    "consumeLicense": [*MACHINE, "amount"],
    "deactivateLicense": MACHINE,
    "diagnoseLicense": MACHINE,
    "issueOfflineLicense": MACHINE,
    "validateLicense": MACHINE,
    "getCustomerSummary": PERIOD,
    "getLicenseAudit": PERIOD,
    "getSubscriptionSettlement": [*PERIOD, "order_id"],
    "getUsageSummary": PERIOD,
    "listActivities": [*PERIOD, "status_code", "action"],
    "listUsageLedger": PERIOD,
    # A key is sent only to an address.
    "startTrial": ["binding", "send_key"],
    "createLicenseBatch": ["licenses"],
    "rotateLicenseKey": ["send_key"],
    "assignLicenseFeature": ["", *QUOTA],
    "setPolicyFeature": ["", *QUOTA],
    # At most 1,000 buckets.
    "getOverview": [*PERIOD, "bucket"],
    # Networks have no host bits; the scope admin cannot be limited to products.
    "createApiKey": ["allowed_cidrs", "product_ids"],
    "updateApiKey": ["allowed_cidrs", "product_ids"],
    "createCustomField": ["enum_options"],
    "updateCustomField": ["enum_options"],
    "setCustomerCustomFieldValue": VALUE,
    "setLicenseCustomFieldValue": VALUE,
    "createLicense": ["expires_at", "maintenance_expires_at", "features", "send_key"],
    "updateLicense": ["expires_at", "maintenance_expires_at"],
    "changeLicensePolicy": ["expires_at"],
    "renewLicense": ["", "expires_at", "extend_by_days"],
    "renewLicenseMaintenance": ["", "maintenance_expires_at", "extend_by_days"],
    "transferLicense": [""],
    "resetLicenseUsage": ["", "feature_id", "feature_code", "add_credits", "max_consumptions", "total_consumptions", "reset_consumed"],
    "createOrder": ["period_start", "period_end"],
    "updateOrder": ["period_start", "period_end"],
    "createSubscription": ["canceled_at", "current_period_end"],
    "updateSubscription": ["canceled_at", "current_period_end"],
    # Only trials are public, and they have a term.
    "createPolicy": ["duration_days", "maintenance_days", "public_trial"],
    "updatePolicy": ["duration_days", "maintenance_days", "public_trial"],
    "createReportExport": ["filters"],
    "createBulkJob": ["", "filter", "license_ids", "parameters", "confirm_all"],
    # Addresses are https and public.
    "createWebhook": ["url"],
    "updateWebhook": ["url", "rotate_secret"],
}


def is_valid(case):
    return case.meta is not None and case.meta.generation.mode.is_positive


def with_plain_names(value):
    """JSON whose objects have no name with a backslash, and none named __proto__."""
    if isinstance(value, list):
        return [with_plain_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        "proto" if name == "__proto__" else name.replace("\\", "/"): with_plain_names(inner)
        for name, inner in value.items()
    }


def size_of(value, depth=1):
    """The names of objects within JSON, and its levels."""
    inner = value if isinstance(value, list) else list(value.values()) if isinstance(value, dict) else None
    if inner is None:
        return 0, depth - 1
    sizes = [size_of(item, depth + 1) for item in inner]
    own = len(value) if isinstance(value, dict) else 0
    return own + sum(names for names, _ in sizes), max([depth, *(levels for _, levels in sizes)])


def with_small_metadata(value):
    """JSON without metadata that has too many names or levels."""
    if isinstance(value, list):
        return [with_small_metadata(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {name: {} if name == "metadata" and is_large(inner) else with_small_metadata(inner) for name, inner in value.items()}


def is_large(metadata):
    names, levels = size_of(metadata)
    return names > 64 or levels > 4


@schemathesis.hook
def before_call(context, case, kwargs):
    if not is_valid(case):
        return
    if not case.query:
        case.query = {}
    query = case.query
    # A cursor is the text of an earlier response.
    query.pop("cursor", None)
    # Any name of the IANA database.
    if "tz" in query:
        query["tz"] = "Europe/Zurich"
    # A period ends after it begins.
    if "from" in query and "to" in query:
        query["from"], query["to"] = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
    if case.operation.path.endswith("/subscription-settlement") and "order_id" not in query:
        query.setdefault("subscription_id", "unknown")
    # Each request is a change of its own.
    if case.headers and "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    # The state of a record is not known; 409 would hide what the service does with the body.
    if case.headers and "If-Match" in case.headers:
        case.headers["If-Match"] = "*"
    if isinstance(case.body, dict):
        case.body = with_small_metadata(with_plain_names(case.body))


@schemathesis.check
def refused_by_a_rule(ctx, response, case):
    if response.status_code not in (400, 422) or not is_valid(case):
        return
    error = response.json()["error"]
    if error["code"] not in ("BAD_REQUEST", "INVALID_JSON", "INVALID_QUERY", "VALIDATION_ERROR"):
        return
    operation = case.operation.definition.raw["operationId"]
    field = error.get("detail", "").split(".")[0].split("[")[0]
    if field not in RULES.get(operation, []):
        raise AssertionError(f"RULE ({operation}, {field}): {error['message']}")
