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
	limit := func(n int) *int {
		if n <= 0 {
			return nil
		}
		return &n
	}
	return dst.Raw(wire.ObjectOf("name", "models/"+m.ID, "version", m.ID, "displayName", cmp.Or(m.DisplayName, m.ID), "description", wire.Optional(m.Description),
		"inputTokenLimit", limit(m.InputTokens), "outputTokenLimit", limit(m.OutputTokens),
		"supportedGenerationMethods", []string{"generateContent", "streamGenerateContent", "countTokens"}))
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
	return dst.Raw(wire.ObjectOf("totalTokens", tokens))
}
