{{/* Name of every object: the release's, with the chart's unless it is part of it already. */}}
{{- define "spark-sink.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods; it cannot change between two versions of a release. */}}
{{- define "spark-sink.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "spark-sink.labels" -}}
{{ include "spark-sink.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/part-of: cdc-translator
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "spark-sink.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "spark-sink.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "spark-sink.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/*
The configuration file. As JSON, which is YAML with every string in quotes: toYaml leaves a few strings bare that the
program's YAML reader takes for something else ("=", "<<", 2022-03-20T00:00:00+08).
*/}}
{{- define "spark-sink.config" -}}
{{- toPrettyJson .Values.config -}}
{{- end -}}

{{/*
Whether a path outlives the pod: an object store's URL, or a folder in a mounted claim. Says "yes" or nothing.
Arguments: path, claims.
*/}}
{{- define "spark-sink.lasting" -}}
{{- if and (contains "://" .path) (not (hasPrefix "file://" .path)) -}}
yes
{{- else -}}
{{- $folder := printf "%s/" (regexReplaceAll "^file:(//)?" .path "" | clean) -}}
{{- range .claims -}}
{{- if hasPrefix (printf "%s/" .mountPath) $folder -}}
yes
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Refuses values that are valid one by one but cannot work together. */}}
{{- define "spark-sink.check" -}}
{{- $config := .Values.config -}}
{{- if not $config.pipeline -}}
{{- fail "config.pipeline is not set: give this sink a name, and never change it." -}}
{{- end -}}
{{- if not (dig "kafka" "bootstrap_servers" "" $config) -}}
{{- fail "config.kafka.bootstrap_servers is not set: give the brokers as host:port, separated by commas." -}}
{{- end -}}
{{- if not (dig "spark" "master" "" $config) -}}
{{- fail "config.spark.master is not set: there is no spark-submit in the pod that would say where Spark runs, so give local[N] or the URL of a cluster." -}}
{{- end -}}
{{- $claims := .Values.claims -}}
{{- range $setting, $path := dict "config.checkpoint" $config.checkpoint "config.tables.warehouse" (dig "tables" "warehouse" "" $config) -}}
{{- if not $path -}}
{{- fail (printf "%s is not set: give a folder in one of the claims, or the URL of an object store." $setting) -}}
{{- end -}}
{{- if not (include "spark-sink.lasting" (dict "path" $path "claims" $claims)) -}}
{{- fail (printf "%s is %s, a folder of the pod that is lost when the pod ends: put it below the mountPath of one of the claims, or give the URL of an object store." $setting $path) -}}
{{- end -}}
{{- end -}}
{{- range list "sasl_password" "oauth_client_secret" "ssl_key_password" -}}
{{- $password := dig "kafka" . "" $config | default "" | toString -}}
{{- if and $password (not (regexMatch "^\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}$" $password)) -}}
{{- fail (printf "config.kafka.%s holds a password, and the ConfigMap is no place for one: write ${NAME} and name the Secret in secretEnv." .) -}}
{{- end -}}
{{- end -}}
{{- $names := list -}}
{{- range concat .Values.secretEnv .Values.env -}}
{{- if has .name $names -}}
{{- fail (printf "the variable %s is given twice in secretEnv and env: which one counts would be left to chance." .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range regexFindAll "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}" (include "spark-sink.config" .) -1 -}}
{{- $name := . | trimPrefix "${" | trimSuffix "}" -}}
{{- if not (has $name $names) -}}
{{- fail (printf "config asks for the variable %s, which neither secretEnv nor env gives: the program would stop at start." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
