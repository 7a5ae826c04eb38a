package messages

import (
	"strconv"
	"time"

	"github.com/lathe-run/lathe/internal/rawjson"
	"github.com/lathe-run/lathe/internal/wire"
)

// A Model is an entry of a list of models.
type Model struct {
	ID          string
	DisplayName string // "": the id
	Created     int64  // Unix time in seconds
}

// AppendModels appends the answer to a request for the list of models.
func AppendModels(dst []byte, models []Model) []byte {
	dst = append(dst, `{"data":[`...)
	for i := range models {
		dst = AppendModel(appendComma(dst), &models[i])
	}
	dst = append(dst, `],"has_more":false`...)
	if len(models) == 0 {
		return append(dst, `,"first_id":null,"last_id":null}`...)
	}
	dst = wire.AppendText(dst, "first_id", models[0].ID)
	return append(wire.AppendText(dst, "last_id", models[len(models)-1].ID), '}')
}

// AppendModel appends the answer to a request for one model.
func AppendModel(dst []byte, m *Model) []byte {
	name := m.DisplayName
	if name == "" {
		name = m.ID
	}
	dst = wire.AppendText(append(dst, `{"type":"model"`...), "id", m.ID)
	dst = wire.AppendText(dst, "display_name", name)
	return append(wire.AppendText(dst, "created_at", time.Unix(m.Created, 0).UTC().Format(time.RFC3339)), '}')
}

// AppendCount appends the answer to a request to count tokens.
func AppendCount(dst []byte, tokens int64) []byte {
	return append(strconv.AppendInt(append(dst, `{"input_tokens":`...), tokens, 10), '}')
}

// published are the members of the published schema of a request that ParseRequest does not read.
var published = rawjson.NewNames("cache_control", "container", "context_management", "diagnostics", "fallbacks", "inference_geo",
	"mcp_servers", "output_format", "service_tier", "speed", "user_profile_id")

// Published reports whether the published schema of requests has the member and ParseRequest does not read it.
func Published(name string) bool { return published.Has(name) }

// LikePublished returns the published member that differs from name only under Unicode case folding; "" if there is none.
func LikePublished(name string) string { return published.Like(name) }
