{{- define "lathe.name" -}}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{- end -}}

{{- define "lathe.selector" -}}
app.kubernetes.io/name: lathe
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "lathe.labels" -}}
{{ include "lathe.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
{{- end -}}
