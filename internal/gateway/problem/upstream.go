package problem

import (
	"cmp"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/lathe-run/lathe"
)

// loadingRetry is the Retry-After of a run that ended because the model was not loaded in time.
const loadingRetry = 10 * time.Second

// upstream returns the problem of a request whose model server failed. A failure that a repeat cannot remedy gets a status that clients do
// not retry. OpenAI's SDKs and the AI SDK retry 408, 409, 429 and 5xx, and LangChain retries all but 400 to 407 and 409; that leaves 400
// and 404. The message states whether the operator or the client can remedy the failure. If the model server refused the request, the
// message contains its error text, which is about the client's own request. For other failures the message is fixed, because applications
// show it to their users; the error text is in the run's view (error_message) and in the log.
func upstream(err error) *Problem {
	p := &Problem{Status: lathe.CodeUpstream.HTTPStatus(), Code: string(lathe.CodeUpstream), Message: "The model server failed.", OfUpstream: true}
	var up *lathe.UpstreamError
	if !errors.As(err, &up) {
		return p
	}
	p.Code = string(up.Kind)
	switch up.Kind {
	case lathe.UpstreamTimeout:
		p.Status, p.Message = http.StatusGatewayTimeout, "The model server did not answer in time."
	case lathe.UpstreamRateLimited:
		p.Status, p.Message, p.RetryAfter = http.StatusTooManyRequests, "The model server takes no more requests now.", max(up.RetryAfter, time.Second)
		if !up.Retryable && up.ProviderCode == "insufficient_quota" {
			p.Status, p.RetryAfter = http.StatusBadRequest, 0
			p.Message = "The account of this gateway at the model server has no quota left. Only the operator of this gateway can change that."
			p.NoRetry = true
		}
	case lathe.Upstream4xx:
		p.refused(up)
	case lathe.UpstreamAborted:
		p.Message = "The connection to the model server broke off, or could not be made."
	case lathe.UpstreamBadProtocol:
		p.Message = "The model server answered something that is not a completion."
	case lathe.UpstreamLoading:
		p.Status, p.Message, p.RetryAfter = http.StatusServiceUnavailable, "The model server is loading the model.", max(up.RetryAfter, loadingRetry)
	case lathe.Upstream5xx:
	}
	return p
}

// refused sets p to the problem of a request that the model server refused with a 4xx status.
func (p *Problem) refused(up *lathe.UpstreamError) {
	p.Status, p.NoRetry = http.StatusBadRequest, true
	p.Message = "The model server refused the request."
	if up.Message != "" {
		p.Message = "The model server refused the request: " + up.Message
	}
	status := up.Status
	if status < 400 && saysCredentials(up) { // an error within a stream may have no status
		status = http.StatusUnauthorized
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		p.Message = "The model server did not accept this gateway's credentials for the model. Only the operator of this gateway can change that."
	case http.StatusPaymentRequired:
		p.Message = "The account of this gateway at the model server cannot pay for the request. Only the operator of this gateway can change that."
	case http.StatusNotFound:
		p.Status = http.StatusNotFound
		if up.Message == "" || saysNoModel(up) {
			p.Message = "The model server does not have the model."
		}
	default:
		p.Code = cmp.Or(up.ProviderCode, p.Code)
		if status == http.StatusRequestEntityTooLarge && p.Code != lathe.CodeContextLength { // agents expect 400 for this code
			p.Status = status
		}
	}
}

// saysCredentials reports whether the code of an error means that the model server does not accept the credentials.
func saysCredentials(up *lathe.UpstreamError) bool {
	code := strings.ToLower(up.ProviderCode)
	return strings.Contains(code, "authentication") || strings.Contains(code, "permission") || strings.Contains(code, "api_key")
}

// saysNoModel reports whether a 404 of a model server means that it does not have the model.
func saysNoModel(up *lathe.UpstreamError) bool {
	text := strings.ToLower(up.Message)
	return up.ProviderCode == "model_not_found" ||
		strings.Contains(text, "model") && (strings.Contains(text, "not found") || strings.Contains(text, "not exist"))
}
