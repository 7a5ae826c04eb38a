package loop

import (
	"errors"

	"github.com/lathe-run/lathe"
)

// refusesTools reports whether err says that the server cannot do tools at all.
func refusesTools(err error) bool {
	var up *lathe.UpstreamError
	return errors.As(err, &up) && up.RefusesTools()
}

// unparsed reports whether err says that the server could not parse what the model wrote.
func unparsed(err error) bool {
	var up *lathe.UpstreamError
	return errors.As(err, &up) && up.Unparsed
}
