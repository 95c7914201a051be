{{- define "fabric.labels" -}}
app.kubernetes.io/name: fabric-operator
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "fabric.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "fabric.subject" -}}
- kind: ServiceAccount
  name: fabric-operator
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- define "fabric.brokerNamespace" -}}submariner-k8s-broker{{- end }}
