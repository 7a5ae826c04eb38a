package wire

import (
	"strconv"
)

// Error returns type, status, code and parameter of the error. It omits the message, which may quote the request.
func (e *APIError) Error() string {
	b := []byte(e.Type)
	if len(b) == 0 {
		b = append(b, "error"...)
	}
	if e.Status != 0 {
		b = append(b, " (HTTP "...)
		b = strconv.AppendInt(b, int64(e.Status), 10)
		b = append(b, ')')
	}
	if e.Code != "" {
		b = append(append(b, " code "...), e.Code...)
	}
	if e.Param != "" {
		b = append(append(b, " at "...), e.Param...)
	}
	return string(b)
}
