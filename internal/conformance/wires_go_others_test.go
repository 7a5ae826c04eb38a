//go:build !one_sdk

package conformance

func init() {
	goWires = append(goWires,
		goWire{"anthropic-sdk-go", "anthropic", messagesWords, messagesModes, newMessagesV1},
		goWire{"anthropic-sdk-go v2", "anthropic", messagesWords, messagesModes, newMessagesV2},
		goWire{"genai", "gemini", geminiWords, []string{"whole", "stream"}, newGeminiClient})
}
