// Package check has the tests of compose.yaml and of the chart. It is a module of its own: the types of Kubernetes and the
// library of compose are for these tests alone.
package check

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/santhosh-tekuri/jsonschema/v6"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// functions are those of Helm that the chart uses; a template that uses another one does not parse.
func functions(t *template.Template) template.FuncMap {
	return template.FuncMap{
		"default": func(other, value any) any {
			if value == nil || value == "" {
				return other
			}
			return value
		},
		"fail": func(why string) (string, error) { return "", errors.New(why) },
		"get": func(of map[string]any, key string) any {
			if v, ok := of[key]; ok {
				return v
			}
			return ""
		},
		"include": func(name string, data any) (string, error) {
			var b strings.Builder
			err := t.ExecuteTemplate(&b, name, data)
			return b.String(), err
		},
		"nindent": func(n int, text string) string {
			return "\n" + strings.Repeat(" ", n) + strings.ReplaceAll(text, "\n", "\n"+strings.Repeat(" ", n))
		},
		"quote":     func(v any) string { return fmt.Sprintf("%q", fmt.Sprint(v)) },
		"sha256sum": func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"toYaml": func(v any) (string, error) {
			b, err := yaml.Marshal(v)
			return strings.TrimSuffix(string(b), "\n"), err
		},
		"trimSuffix": func(suffix, text string) string { return strings.TrimSuffix(text, suffix) },
		"trunc":      func(n int, text string) string { return text[:min(n, len(text))] },
	}
}

func readYAML(t *testing.T, name string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := yaml.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// merge puts the values of over in the place of those of base.
func merge(base, over map[string]any) map[string]any {
	for k, v := range over {
		if below, ok := v.(map[string]any); ok {
			if has, ok := base[k].(map[string]any); ok {
				v = merge(has, below)
			}
		}
		base[k] = v
	}
	return base
}

// render returns the objects of the chart with other values, by kind and name.
func render(t *testing.T, over string) map[string][]byte {
	t.Helper()
	objects, err := rendered(t, over)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// rendered is render for values that a template may refuse.
func rendered(t *testing.T, over string) (map[string][]byte, error) {
	t.Helper()
	chart := readYAML(t, "../chart/Chart.yaml")
	values, changed := readYAML(t, "../chart/values.yaml"), map[string]any{}
	if err := yaml.Unmarshal([]byte(over), &changed); err != nil {
		t.Fatal(err)
	}
	data := map[string]any{"Values": merge(values, changed), "Chart": map[string]any{"AppVersion": chart["appVersion"], "Name": chart["name"]},
		"Release": map[string]any{"Name": "team-a", "Service": "Helm", "Namespace": "tools"}}
	all := template.New("chart").Option("missingkey=error")
	all.Funcs(functions(all))
	files, err := filepath.Glob("../chart/templates/*")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	if _, err := all.ParseFiles(files...); err != nil {
		t.Fatal(err)
	}
	objects := map[string][]byte{}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "_") {
			continue
		}
		var b bytes.Buffer
		if err := all.ExecuteTemplate(&b, filepath.Base(file), data); err != nil {
			return nil, err
		}
		for _, text := range strings.Split(b.String(), "\n---\n") {
			if strings.TrimSpace(text) == "" {
				continue
			}
			var kind struct {
				Kind     string `json:"kind"`
				Metadata struct {
					Name string `json:"name"`
				} `json:"metadata"`
			}
			if err := yaml.Unmarshal([]byte(text), &kind); err != nil {
				t.Fatalf("%s: %v\n%s", file, err, text)
			}
			name := kind.Kind + " " + kind.Metadata.Name
			if objects[name] != nil {
				t.Errorf("%s is there twice", name)
			}
			objects[name] = []byte(text)
		}
	}
	return objects, nil
}

// decode decodes an object into its type of the Kubernetes API, and fails for members that the type does not have, and for
// members that are there twice.
func decode[T any](t *testing.T, objects map[string][]byte, name string) *T {
	t.Helper()
	var out T
	if objects[name] == nil {
		t.Fatalf("the chart has no %s", name)
	}
	if err := yaml.UnmarshalStrict(objects[name], &out); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, objects[name])
	}
	return &out
}

// The probes of the chart and the address that its servers have for each other are HTTP: HTTPS is refused by name.
func TestChartRefusesTLS(t *testing.T) {
	t.Parallel()
	if _, err := rendered(t, "config: {serve: {tls: {cert: a, key: b}}}"); err == nil || !strings.Contains(err.Error(), "config.serve.tls") {
		t.Errorf("%v", err)
	}
	objects, err := rendered(t, "config: {serve: {drain_delay: 5s}}")
	if err != nil {
		t.Fatal(err)
	}
	c := decode[appsv1.Deployment](t, objects, "Deployment team-a").Spec.Template.Spec.Containers[0]
	for _, p := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if s := p.HTTPGet.Scheme; s != "" && s != corev1.URISchemeHTTP {
			t.Errorf("a probe with %s", s)
		}
	}
}

// TestChart: the objects of the chart are well-formed, refer to each other by names and labels that exist, and run without
// rights.
func TestChart(t *testing.T) {
	t.Parallel()
	objects := render(t, "")
	if want := []string{"ConfigMap team-a", "Deployment team-a", "PodDisruptionBudget team-a", "Service team-a", "Service team-a-postgres", "ServiceAccount team-a", "StatefulSet team-a-postgres"}; !slices.Equal(names(objects), want) {
		t.Errorf("objects %q, want %q", names(objects), want)
	}
	config := decode[corev1.ConfigMap](t, objects, "ConfigMap team-a")
	var settings map[string]any
	if err := yaml.UnmarshalStrict([]byte(config.Data["lathe.yaml"]), &settings); err != nil || settings["keys"] == nil || settings["cluster"] == nil {
		t.Errorf("%v, %v", settings, err)
	}
	account := decode[corev1.ServiceAccount](t, objects, "ServiceAccount team-a")
	service := decode[corev1.Service](t, objects, "Service team-a")
	budget := decode[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget team-a")
	d := decode[appsv1.Deployment](t, objects, "Deployment team-a")
	pod := d.Spec.Template
	for what, selector := range map[string]map[string]string{"Deployment": d.Spec.Selector.MatchLabels, "Service": service.Spec.Selector, "PodDisruptionBudget": budget.Spec.Selector.MatchLabels} {
		if !selects(selector, pod.Labels) {
			t.Errorf("%s selects %v, and the pods have %v", what, selector, pod.Labels)
		}
	}
	c := pod.Spec.Containers[0]
	if *d.Spec.Replicas != 2 || pod.Spec.ServiceAccountName != account.Name || c.Image != "lathe:0.2.0" {
		t.Errorf("%d replicas, account %s, image %s", *d.Spec.Replicas, pod.Spec.ServiceAccountName, c.Image)
	}
	if s := c.SecurityContext; !*pod.Spec.SecurityContext.RunAsNonRoot || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || !slices.Contains(s.Capabilities.Drop, "ALL") || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("rights: %+v", s)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		volumes[v.Name] = true
		if v.ConfigMap != nil && v.ConfigMap.Name != config.Name {
			t.Errorf("the volume of %s", v.ConfigMap.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("%s has no volume", m.MountPath)
		}
	}
	ports := map[string]bool{}
	for _, p := range c.Ports {
		ports[p.Name] = true
	}
	for what, port := range map[string]string{"startup": c.StartupProbe.HTTPGet.Port.StrVal, "liveness": c.LivenessProbe.HTTPGet.Port.StrVal, "readiness": c.ReadinessProbe.HTTPGet.Port.StrVal, "service": service.Spec.Ports[0].TargetPort.StrVal} {
		if !ports[port] {
			t.Errorf("%s: no port %q", what, port)
		}
	}
	database := decode[corev1.Service](t, objects, "Service team-a-postgres")
	set := decode[appsv1.StatefulSet](t, objects, "StatefulSet team-a-postgres")
	if !selects(database.Spec.Selector, set.Spec.Template.Labels) || !selects(set.Spec.Selector.MatchLabels, set.Spec.Template.Labels) || selects(service.Spec.Selector, set.Spec.Template.Labels) || set.Spec.ServiceName != database.Name {
		t.Errorf("PostgreSQL: %v, %v, %v", database.Spec.Selector, set.Spec.Selector, set.Spec.Template.Labels)
	}
	if got := variable(c, "LATHE_STORE"); got != "postgres://lathe@"+database.Name+":5432/lathe?sslmode=disable" {
		t.Errorf("LATHE_STORE is %q", got)
	}
	if set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String() != "10Gi" || set.Spec.VolumeClaimTemplates[0].Name != set.Spec.Template.Spec.Containers[0].VolumeMounts[0].Name {
		t.Errorf("%+v", set.Spec.VolumeClaimTemplates)
	}
}

// TestChartWithOwnDatabase: without the chart's database there is none, and LATHE_STORE comes from the secret.
func TestChartWithOwnDatabase(t *testing.T) {
	t.Parallel()
	objects := render(t, `{postgres: {enabled: false}, replicas: 3, image: {repository: "registry.example/lathe", tag: "1.2.3"}, secretName: team, service: {port: 8080}}`)
	if len(objects) != 5 {
		t.Errorf("objects %q", names(objects))
	}
	d := decode[appsv1.Deployment](t, objects, "Deployment team-a")
	c := d.Spec.Template.Spec.Containers[0]
	if *d.Spec.Replicas != 3 || c.Image != "registry.example/lathe:1.2.3" || variable(c, "LATHE_STORE") != "" || c.EnvFrom[0].SecretRef.Name != "team" {
		t.Errorf("%+v", c)
	}
	if s := decode[corev1.Service](t, objects, "Service team-a"); s.Spec.Ports[0].Port != 8080 {
		t.Errorf("%+v", s.Spec)
	}
}

// TestChartValues: the schema of the values accepts the chart's own and refuses words that it does not have.
func TestChartValues(t *testing.T) {
	t.Parallel()
	f, err := os.Open("../chart/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("values.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("values.json")
	if err != nil {
		t.Fatal(err)
	}
	for over, valid := range map[string]bool{"": true, "replicas: 0": false, "replicaCount: 2": false, "postgres: {enable: true}": false, "image: {pullPolicy: Sometimes}": false, "config: {models: {}}": true} {
		changed := map[string]any{}
		if err := yaml.Unmarshal([]byte(over), &changed); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(merge(readYAML(t, "../chart/values.yaml"), changed)); (err == nil) != valid {
			t.Errorf("%q: %v", over, err)
		}
	}
}

// TestDecodeIsStrict: a member that the API does not have is found, so that TestChart can fail.
func TestDecodeIsStrict(t *testing.T) {
	t.Parallel()
	var d appsv1.Deployment
	if err := yaml.UnmarshalStrict([]byte("spec: {template: {spec: {containers: [{name: a, imagePullPolicies: Always}]}}}"), &d); err == nil || !strings.Contains(err.Error(), "imagePullPolicies") {
		t.Error(err)
	}
}

func names(objects map[string][]byte) []string {
	var out []string
	for name := range objects {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func selects(selector, labels map[string]string) bool {
	for k, v := range selector {
		if labels[k] != v {
			return false
		}
	}
	return len(selector) > 0
}

func variable(c corev1.Container, name string) string {
	for _, v := range c.Env {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}
