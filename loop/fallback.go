package loop

import (
	"errors"
	"strings"

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

// refusesRoles reports whether err says that the server's chat template does not take the order of roles in the
// conversation.
func refusesRoles(err error) bool {
	var up *lathe.UpstreamError
	if !errors.As(err, &up) || up.Status < 400 {
		return false
	}
	text := strings.ToLower(up.Message)
	for _, words := range roleWords {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// roleWords are the words of chat templates (Mistral's, Llama 2's, Gemma's) and of Mistral's own server.
var roleWords = []string{"roles must alternate", "unexpected role 'user'"}
