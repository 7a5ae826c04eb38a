package gemini

import (
	"strconv"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Model is an entry in the list of models.
type Model struct {
	ID          string // as it stands in paths
	DisplayName string // "": the ID
	Description string
	// InputTokens and OutputTokens are the model's token limits; 0: unknown.
	InputTokens, OutputTokens int
}

// AppendModel appends the object that describes a model.
func AppendModel(dst []byte, m *Model) []byte {
	name := m.DisplayName
	if name == "" {
		name = m.ID
	}
	dst = append(dst, `{"name":`...)
	dst = rawjson.AppendQuote(dst, "models/"+m.ID)
	dst = wire.AppendText(dst, "version", m.ID)
	dst = wire.AppendText(dst, "displayName", name)
	if m.Description != "" {
		dst = wire.AppendText(dst, "description", m.Description)
	}
	if m.InputTokens > 0 {
		dst = strconv.AppendInt(wire.AppendKey(dst, "inputTokenLimit"), int64(m.InputTokens), 10)
	}
	if m.OutputTokens > 0 {
		dst = strconv.AppendInt(wire.AppendKey(dst, "outputTokenLimit"), int64(m.OutputTokens), 10)
	}
	return append(dst, `,"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}`...)
}

// AppendModels appends the list of models.
func AppendModels(dst []byte, models []Model) []byte {
	dst = append(dst, `{"models":[`...)
	for i := range models {
		dst = AppendModel(appendComma(dst, '['), &models[i])
	}
	return append(dst, "]}"...)
}

// AppendCount appends the answer to a request for the number of tokens.
func AppendCount(dst []byte, tokens int64) []byte {
	dst = append(dst, `{"totalTokens":`...)
	return append(strconv.AppendInt(dst, tokens, 10), '}')
}
