// A product, a policy and a license by a client of openapi-generator. infra/scripts/clients.ts runs it.
package smoke;

import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

public class Smoke {
  static ApiClient client(String authorization) {
    ApiClient client = new ApiClient();
    client.setBasePath(System.getenv("SERVICE_URL"));
    client.addDefaultHeader("Authorization", authorization);
    return client;
  }

  public static void main(String[] arguments) throws ApiException {
    ApiClient vendor = client("Bearer " + System.getenv("SERVICE_TOKEN"));
    Product product = new ProductsApi(vendor).createProduct(
        new ProductCreateRequest().name("Editor").code("editor-" + System.getenv("SERVICE_SUFFIX")), null).getData();
    Policy policy = new PoliciesApi(vendor).createPolicy(product.getId(),
        new PolicyCreateRequest().name("Forever").code("forever").licenseType(LicenseType.PERPETUAL).maxActivations(1),
        null).getData();
    LicenseWithKey created = new LicensesApi(vendor).createLicense(
        new LicenseCreateRequest().productId(product.getId()).policyId(policy.getId()), null).getData();

    RuntimeApi application = new RuntimeApi(client("License " + created.getLicenseKey()));
    RuntimeBindingRequest laptop = new RuntimeBindingRequest().fingerprint("laptop");
    Entitlement activated = application.activateLicense(laptop).getData();
    Entitlement validated = application.validateLicense(laptop).getData();
    if (!validated.getDeviceId().equals(activated.getDeviceId())) throw new AssertionError("another device");

    try {
      application.activateLicense(new RuntimeBindingRequest().fingerprint("desktop"));
      throw new AssertionError("not refused");
    } catch (ApiException refused) {
      if (refused.getCode() != 403 || !refused.getResponseBody().contains("ACTIVATION_LIMIT_REACHED")) throw refused;
    }
    System.out.println("ok");
  }
}
