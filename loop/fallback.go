package loop

import (
	"errors"

	"github.com/lathe-run/lathe"
)

// refusesTools reports whether the server refused the request because it does not support tools.
func refusesTools(err error) bool {
	var up *lathe.UpstreamError
	return errors.As(err, &up) && up.RefusesTools()
}

// unparsed reports whether the server could not parse the output of the model.
func unparsed(err error) bool {
	var up *lathe.UpstreamError
	return errors.As(err, &up) && up.Unparsed
}
