package messages

import (
	"cmp"
	"time"

	"github.com/lathe-run/lathe/internal/wire"
)

// A Model is an entry of a list of models.
type Model struct {
	ID          string
	DisplayName string // "": the ID
	Created     int64  // Unix time in seconds
}

// AppendModels appends the response with the list of models.
func AppendModels(dst wire.JSON, models []Model) wire.JSON {
	dst = dst.Lit(`{"data":[`)
	for i := range models {
		dst = AppendModel(dst.Next(), &models[i])
	}
	dst = dst.Lit(`],"has_more":false`)
	if len(models) == 0 {
		return dst.Lit(`,"first_id":null,"last_id":null}`)
	}
	return dst.Fields("first_id", models[0].ID, "last_id", models[len(models)-1].ID).Lit("}")
}

// AppendModel appends the response with one model.
func AppendModel(dst wire.JSON, m *Model) wire.JSON {
	return dst.Raw(wire.ObjectOf("type", "model", "id", m.ID, "display_name", cmp.Or(m.DisplayName, m.ID), "created_at", time.Unix(m.Created, 0).UTC().Format(time.RFC3339)))
}

// AppendCount appends the response with a number of tokens.
func AppendCount(dst wire.JSON, tokens int64) wire.JSON {
	return dst.Raw(wire.ObjectOf("input_tokens", tokens))
}

// Published are members in the published schema of a request that ParseRequest does not read.
var Published = nameSet(`cache_control container context_management diagnostics fallbacks inference_geo mcp_servers output_format service_tier speed
		user_profile_id`)
