{{/*
The name of every object: the release's name, plus the chart's unless the release's name contains it. It has at most 52
characters, the limit for a StatefulSet, whose name is part of a label. The alerts need it at the beginning of the
names of pods.
*/}}
{{- define "translator.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* The labels that select the pods. They cannot change between two versions of a release. */}}
{{- define "translator.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "translator.labels" -}}
{{ include "translator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | quote }}
app.kubernetes.io/part-of: cdc-translator
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- end -}}

{{- define "translator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "translator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "translator.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* The consumer group. Two releases cannot share one by accident. */}}
{{- define "translator.group" -}}
{{- dig "group" "" .Values.config | default (include "translator.fullname" .) -}}
{{- end -}}

{{/*
The configuration file as JSON, which is YAML with every string in quotes. toYaml does not quote some strings that the
program's YAML reader interprets as something else ("=", "<<", 2022-03-20T00:00:00+08).
*/}}
{{- define "translator.config" -}}
{{- $named := dict "group" (include "translator.group" .) -}}
{{- if .Values.staticMembership -}}
{{- $_ := set $named "group_instance_id" "${POD_NAME}" -}}
{{- end -}}
{{- merge $named .Values.config | toPrettyJson -}}
{{- end -}}

{{/* The security context of the pods. The pod of `helm test` uses this and the next three, too. */}}
{{- define "translator.podSecurityContext" -}}
runAsNonRoot: true
{{- with .Values.userId }}
runAsUser: {{ . | int64 }}
runAsGroup: {{ . | int64 }}
# This group owns mounted Secrets, so that the process can read them.
fsGroup: {{ . | int64 }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* The variables for the program's configuration, or nothing if there are none. */}}
{{- define "translator.env" -}}
{{- if or .Values.secretEnv .Values.env .Values.staticMembership }}
env:
  {{- if .Values.staticMembership }}
  - name: POD_NAME
    valueFrom:
      fieldRef:
        fieldPath: metadata.name
  {{- end }}
  {{- range .Values.secretEnv }}
  - name: {{ .name }}
    valueFrom:
      secretKeyRef:
        name: {{ .secretName }}
        key: {{ .key }}
  {{- end }}
  {{- range .Values.env }}
  - name: {{ .name }}
    value: {{ .value | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{- define "translator.securityContextAndMounts" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
  - name: config
    mountPath: /etc/cdc/config
    readOnly: true
  - name: tmp
    mountPath: /tmp
  {{- range .Values.secretMounts }}
  - name: {{ printf "secret-%s" .name }}
    mountPath: {{ .mountPath }}
    readOnly: true
  {{- end }}
{{- end -}}

{{- define "translator.volumes" -}}
{{- include "translator.volumesWith" (dict "configMap" (include "translator.fullname" .) "root" .) -}}
{{- end -}}

{{/* The volumes, with the configuration from another ConfigMap. */}}
{{- define "translator.volumesWith" -}}
- name: config
  configMap:
    name: {{ .configMap }}
- name: tmp
  emptyDir:
    sizeLimit: {{ .root.Values.tmpSizeLimit }}
{{- range .root.Values.secretMounts }}
- name: {{ printf "secret-%s" .name }}
  secret:
    secretName: {{ .secretName }}
    defaultMode: 0440
{{- end }}
{{- end -}}

{{/* The port of probes and metrics. */}}
{{- define "translator.port" -}}
{{- dig "web" "port" 0 .Values.config | int -}}
{{- end -}}

{{/* The number of startup probes, one every 5 seconds: enough to wait for registry, brokers and the catalog. */}}
{{- define "translator.startupQuestions" -}}
{{- $brokers := dig "timing" "broker_wait" 0 .Values.config | float64 -}}
{{- $services := ternary 1.0 2.0 (empty .Values.config.registry) -}}
{{- divf (addf (mulf $services $brokers) .Values.probes.startup.catalogSeconds) 5 | ceil | int -}}
{{- end -}}

{{/* Reject values that are valid on their own but contradict each other. */}}
{{- define "translator.check" -}}
{{- $config := .Values.config -}}
{{- if not (dig "kafka" "bootstrap_servers" "" $config) -}}
{{- fail "config.kafka.bootstrap_servers is not set. Set it to the brokers as host:port, separated by commas." -}}
{{- end -}}
{{- if not $config.sources -}}
{{- fail "config.sources is empty. Add at least one source with its name, dialect and topics." -}}
{{- end -}}
{{- if not (has (dig "web" "host" "" $config) (list "0.0.0.0" "::")) -}}
{{- fail (printf "config.web.host is %q, but the kubelet and Prometheus reach a pod from outside. Leave it at 0.0.0.0 (or :: for IPv6)." (dig "web" "host" "" $config | toString)) -}}
{{- end -}}
{{- $port := include "translator.port" . | int -}}
{{- if or (lt $port 1) (gt $port 65535) -}}
{{- fail "config.web.port must be a number from 1 to 65535, because the probes and the Service use it." -}}
{{- end -}}
{{- $rebalance := dig "timing" "rebalance" 0 $config -}}
{{- if le (float64 .Values.terminationGracePeriodSeconds) (float64 $rebalance) -}}
{{- fail (printf "terminationGracePeriodSeconds is %v, but config.timing.rebalance lets a drain take %v seconds. A pod would be killed while it hands over its partitions. Raise terminationGracePeriodSeconds above config.timing.rebalance." .Values.terminationGracePeriodSeconds $rebalance) -}}
{{- end -}}
{{- include "cdc.noPlainSecrets" . -}}
{{- if ne (empty .Values.test.topic) (empty .Values.test.message) -}}
{{- fail "test.topic and test.message belong together. Set both, so that `helm test` sends the message to the topic, or neither." -}}
{{- end -}}
{{- if and .Values.strimzi.enabled (not .Values.strimzi.cluster) -}}
{{- fail "strimzi.enabled, and strimzi.cluster is not set. Set it to the Strimzi Kafka cluster for topics and user." -}}
{{- end -}}
{{- if .Values.scaledObject.enabled -}}
{{- if lt (int .Values.scaledObject.maxReplicas) (int .Values.scaledObject.minReplicas) -}}
{{- fail "scaledObject.maxReplicas is below scaledObject.minReplicas." -}}
{{- end -}}
{{- if contains "${" (dig "kafka" "bootstrap_servers" "" $config) -}}
{{- fail "scaledObject.enabled: KEDA connects to the brokers itself and does not know the variables of the pod. Write the brokers into config.kafka.bootstrap_servers." -}}
{{- end -}}
{{- range $source := $config.sources -}}
{{- range $topic := $source.topics -}}
{{- if regexMatch "[*?]" $topic -}}
{{- fail (printf "scaledObject.enabled: KEDA needs topic names, but source %v reads the pattern %q. List its topics, or scale by replicas." $source.name $topic) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $config.group_instance_id -}}
{{- fail "config.group_instance_id is one name, which only one process can have. Remove it and set staticMembership, which gives each pod a name." -}}
{{- end -}}
{{- $names := ternary (list "POD_NAME") list .Values.staticMembership -}}
{{- range concat (.Values.secretEnv | default list) (.Values.env | default list) -}}
{{- if has .name $names -}}
{{- fail (printf "the variable %s is defined twice in secretEnv and env. Remove one of the definitions." .name) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range regexFindAll "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}" (include "translator.config" .) -1 -}}
{{- $name := . | trimPrefix "${" | trimSuffix "}" -}}
{{- if not (has $name $names) -}}
{{- fail (printf "config asks for the variable %s, which neither secretEnv nor env defines. The program would exit at startup." .) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The base URL of the runbooks, to which alerts link. */}}
{{- define "translator.runbooks" -}}
{{- if not (regexMatch "^https?://" .Values.prometheusRule.runbooks) -}}
{{- fail (printf "prometheusRule.runbooks is %q, but alerts link to it. Set it to the http(s) URL of your copy of docs/runbooks." .Values.prometheusRule.runbooks) -}}
{{- end -}}
{{- .Values.prometheusRule.runbooks | trimSuffix "/" -}}
{{- end -}}

{{/* Pods of a StatefulSet keep their names, and therefore their membership in the consumer group. */}}
{{- define "translator.kind" -}}
{{- ternary "StatefulSet" "Deployment" .Values.staticMembership -}}
{{- end -}}

{{/* The ports in the settings, as a JSON list: brokers, schema registry, token issuer, receivers of metrics and lineage. */}}
{{- define "translator.outgoingPorts" -}}
{{- $ports := list -}}
{{- range splitList "," (dig "kafka" "bootstrap_servers" "" .Values.config) -}}
{{- $port := regexFind "[0-9]+$" (trim .) -}}
{{- if not $port -}}
{{- fail (printf "networkPolicy.enabled: the port of the broker %q is not known here. Add it in config.kafka.bootstrap_servers." .) -}}
{{- end -}}
{{- $ports = append $ports (int $port) -}}
{{- end -}}
{{- range list (dig "registry" "url" "" (.Values.config | merge (dict "registry" dict))) (dig "kafka" "oauth_token_url" "" .Values.config) (dig "metrics" "otlp" "endpoint" "" .Values.config) (dig "lineage" "to" "" .Values.config | regexFind "^https?://.*") -}}
{{- if . -}}
{{- $url := urlParse . -}}
{{- $port := regexFind "[0-9]+$" $url.host | default (ternary "443" "80" (eq $url.scheme "https")) -}}
{{- $ports = append $ports (int $port) -}}
{{- end -}}
{{- end -}}
{{- $ports | uniq | toJson -}}
{{- end -}}

{{/*
A counter grew in the last ten minutes, or is new. Prometheus' increase() does not count the first value of a series, but
the first dead letter matters most. Arguments: metric, pods (label matchers), by (labels).
*/}}
{{- define "translator.grew" -}}
{{- $series := printf "%s{%s}" .metric .pods -}}
sum by ({{ .by }}) (increase({{ $series }}[10m])) > 0
or sum by ({{ .by }}) ({{ $series }} unless {{ $series }} offset 10m) > 0
{{- end -}}
