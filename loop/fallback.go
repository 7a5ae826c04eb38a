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
