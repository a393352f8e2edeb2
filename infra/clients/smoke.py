# A product, a policy and a license by a client of openapi-python-client. infra/scripts/clients.ts runs it.
import os

from licensing_service_client import AuthenticatedClient
from licensing_service_client.api.licenses import create_license
from licensing_service_client.api.policies import create_policy
from licensing_service_client.api.products import create_product
from licensing_service_client.api.runtime import activate_license, validate_license
from licensing_service_client.models import (
    LicenseCreateRequest,
    LicenseType,
    PolicyCreateRequest,
    ProductCreateRequest,
    RuntimeBindingRequest,
    SignedErrorResponse,
)

url = os.environ["SERVICE_URL"]
suffix = os.environ["SERVICE_SUFFIX"]
vendor = AuthenticatedClient(base_url=url, token=os.environ["SERVICE_TOKEN"])

product = create_product.sync(client=vendor, body=ProductCreateRequest(name="Editor", code=f"editor-{suffix}")).data
policy = create_policy.sync(
    product.id,
    client=vendor,
    body=PolicyCreateRequest(
        name="Forever", code="forever", license_type=LicenseType.PERPETUAL, max_activations=1
    ),
).data
created = create_license.sync(
    client=vendor, body=LicenseCreateRequest(product_id=product.id, policy_id=policy.id)
).data

application = AuthenticatedClient(base_url=url, token=created.license_key, prefix="License")
laptop = RuntimeBindingRequest(fingerprint="laptop")
activated = activate_license.sync(client=application, body=laptop).data
validated = validate_license.sync(client=application, body=laptop).data
assert validated.device_id == activated.device_id and validated.license_id == created.license_.id

refused = activate_license.sync_detailed(client=application, body=RuntimeBindingRequest(fingerprint="desktop"))
assert refused.status_code == 403, refused
assert isinstance(refused.parsed, SignedErrorResponse), refused
assert refused.parsed.error.code == "ACTIVATION_LIMIT_REACHED" and refused.parsed.error.message, refused
print("ok")
