{{- define "licensing.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "licensing.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "licensing.labels" -}}
{{ include "licensing.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "licensing.secretName" -}}
{{ .Values.secrets.existingSecret | default (include "licensing.name" .) }}
{{- end }}

{{- define "licensing.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* The container's rights, image and settings: the same for the service and the migration. */}}
{{- define "licensing.container" -}}
image: {{ include "licensing.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
envFrom:
  - secretRef:
      name: {{ include "licensing.secretName" . }}
env:
  - name: LICENSING_PORT
    value: {{ .Values.port | quote }}
  {{- if .Values.cluster.enabled }}
  - name: POD_IP
    valueFrom:
      fieldRef:
        fieldPath: status.podIP
  - name: LICENSING_CLUSTER
    value: "true"
  - name: LICENSING_CLUSTER_LISTEN
    value: "0.0.0.0:{{ .Values.cluster.port }}"
  # Other pods read this address from the database.
  - name: LICENSING_CLUSTER_ADDRESS
    value: "$(POD_IP):{{ .Values.cluster.port }}"
  {{- end }}
  {{- range $name, $value := .Values.settings }}
  - name: {{ $name }}
    value: {{ $value | quote }}
  {{- end }}
  {{- with .Values.extraEnv }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .Values.extraVolumeMounts }}
volumeMounts:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "licensing.podSecurity" -}}
serviceAccountName: {{ include "licensing.name" . }}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  seccompProfile:
    type: RuntimeDefault
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* DNS and the database. */}}
{{- define "licensing.databaseEgress" -}}
- ports:
    - { port: 53, protocol: UDP }
    - { port: 53, protocol: TCP }
- ports:
    - port: {{ .Values.networkPolicy.databasePort }}
  {{- with .Values.networkPolicy.databaseTo }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
