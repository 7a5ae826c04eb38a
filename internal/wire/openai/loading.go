package openai

import (
	"strings"
)

// loadingWords are error texts of servers whose model is not yet loaded: llama.cpp, Hugging Face's servers, Ollama, LM Studio.
var loadingWords = []string{"loading model", "model is loading", "currently loading", "still loading", "loading the model", "model is being loaded"}

// Loading reports whether an error with that status and message means that the server is still loading the model, so that the same request
// may succeed later.
func Loading(status int, message string) bool {
	text := strings.ToLower(message)
	if status < 500 || strings.Contains(text, "error loading model") || strings.Contains(text, "failed") {
		return false
	}
	for _, w := range loadingWords {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
