package lathe_test

import (
	"testing"

	"github.com/lathe-run/lathe"
)

func TestHTTPStatus(t *testing.T) {
	t.Parallel()
	for code, want := range map[lathe.Code]int{
		lathe.CodeInvalidRequest: 400, lathe.CodePolicyDenied: 403, lathe.CodeNotFound: 404, lathe.CodeConflict: 409, lathe.CodeContentRemoved: 410,
		lathe.Code(lathe.ReasonToolError): 422, lathe.CodeBudgetExhausted: 429, lathe.CodeInternal: 500, "": 500, lathe.Code(lathe.ReasonInvalidAnswer): 502,
		lathe.CodeUnavailable: 503, lathe.CodeTimeout: 504,
	} {
		if got := code.HTTPStatus(); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
}
