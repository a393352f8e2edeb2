// A product, a policy and a license by a client of oapi-codegen. infra/scripts/clients.ts runs it.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"smoke/licensing"
)

func with(authorization string) licensing.ClientOption {
	return licensing.WithRequestEditorFn(func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", authorization)
		return nil
	})
}

func must[A any](value A, err error) A {
	if err != nil {
		panic(err)
	}
	return value
}

func pointer[A any](value A) *A { return &value }

func main() {
	ctx := context.Background()
	url, suffix := os.Getenv("SERVICE_URL"), os.Getenv("SERVICE_SUFFIX")
	vendor := must(licensing.NewClientWithResponses(url, with("Bearer "+os.Getenv("SERVICE_TOKEN"))))

	product := must(vendor.CreateProductWithResponse(ctx, nil, licensing.ProductCreateRequest{
		Name: "Editor", Code: "editor-" + suffix,
	})).JSON201.Data
	policy := must(vendor.CreatePolicyWithResponse(ctx, product.Id, nil, licensing.PolicyCreateRequest{
		Name: "Forever", Code: "forever", LicenseType: "perpetual", MaxActivations: pointer[int32](1),
	})).JSON201.Data
	created := must(vendor.CreateLicenseWithResponse(ctx, nil, licensing.LicenseCreateRequest{
		ProductId: product.Id, PolicyId: policy.Id,
	})).JSON201.Data

	application := must(licensing.NewClientWithResponses(url, with("License "+created.LicenseKey)))
	laptop := licensing.RuntimeBindingRequest{Fingerprint: pointer("laptop")}
	activated := must(application.ActivateLicenseWithResponse(ctx, laptop)).JSON200.Data
	validated := must(application.ValidateLicenseWithResponse(ctx, laptop)).JSON200.Data
	if validated.DeviceId != activated.DeviceId || validated.LicenseId != created.License.Id {
		panic("another device")
	}

	desktop := licensing.RuntimeBindingRequest{Fingerprint: pointer("desktop")}
	refused := must(application.ActivateLicenseWithResponse(ctx, desktop))
	if refused.StatusCode() != 403 || refused.JSON403.Error.Code != "ACTIVATION_LIMIT_REACHED" || refused.JSON403.Error.Message == "" {
		panic(string(refused.Body))
	}
	fmt.Println("ok")
}
