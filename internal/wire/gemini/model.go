package gemini

import (
	"cmp"

	"github.com/lathe-run/lathe/internal/wire"
)

// A Model is an entry in the list of models.
type Model struct {
	ID          string // as in paths of requests
	DisplayName string // "": the ID
	Description string
	// InputTokens and OutputTokens are the model's token limits; 0: unknown.
	InputTokens, OutputTokens int
}

// AppendModel appends the object that describes a model.
func AppendModel(dst wire.JSON, m *Model) wire.JSON {
	dst = dst.Lit(`{"name":`).Quote("models/"+m.ID).Str("version", m.ID).Str("displayName", cmp.Or(m.DisplayName, m.ID)).OptStr("description", m.Description)
	if m.InputTokens > 0 {
		dst = dst.Num("inputTokenLimit", int64(m.InputTokens))
	}
	if m.OutputTokens > 0 {
		dst = dst.Num("outputTokenLimit", int64(m.OutputTokens))
	}
	return dst.Lit(`,"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}`)
}

// AppendModels appends the list of models.
func AppendModels(dst wire.JSON, models []Model) wire.JSON {
	dst = dst.Lit(`{"models":[`)
	for i := range models {
		dst = AppendModel(dst.Next(), &models[i])
	}
	return dst.Lit("]}")
}

// AppendCount appends the response of countTokens.
func AppendCount(dst wire.JSON, tokens int64) wire.JSON {
	return dst.Lit(`{"totalTokens":`).Int(tokens).Lit("}")
}
