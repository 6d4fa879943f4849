{{/* The pod of the sink: the template of its Deployment, or of the Jobs of its CronJob. */}}
{{- define "spark-sink.pod" -}}
metadata:
  labels:
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- include "spark-sink.labels" . | nindent 4 }}
  annotations:
    # The program reads its file once at startup, so a changed file must replace the pods.
    checksum/config: {{ include "spark-sink.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  {{- if .Values.schedule }}
  restartPolicy: Never
  {{- end }}
  serviceAccountName: {{ include "spark-sink.serviceAccountName" . }}
  # With executors in separate pods, the driver creates them through the Kubernetes API.
  automountServiceAccountToken: {{ eq .Values.mode "executors" }}
  # For a Service called `spark-master`, Kubernetes would set SPARK_MASTER_PORT=tcp://10.0.0.1:7077 in the pod. Spark
  # has settings with such names.
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .Values.image.pullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "spark-sink.podSecurity" . | nindent 4 }}
  containers:
    - name: spark-sink
      image: {{ include "spark-sink.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [run, -c, /etc/cdc/config/spark-sink.yaml{{ if .Values.schedule }}, --available-now{{ end }}]
      {{- if or .Values.secretEnv .Values.env (eq .Values.mode "executors") }}
      env:
        {{- include "spark-sink.env" . | trim | nindent 8 }}
        {{- if eq .Values.mode "executors" }}
        # Executors connect to it, and stop when it stops.
        - name: POD_NAME
          valueFrom: {fieldRef: {fieldPath: metadata.name}}
        - name: POD_IP
          valueFrom: {fieldRef: {fieldPath: status.podIP}}
        {{- end }}
      {{- end }}
      {{- with include "spark-sink.metricsPort" . }}
      ports:
        - name: metrics
          containerPort: {{ . }}
      {{- end }}
      # Spark writes small files into its working directory.
      workingDir: /tmp
      {{- if include "spark-sink.metricsPort" . }}
      # Nothing listens until Spark has started and the sink's own tables exist.
      startupProbe:
        httpGet:
          path: /livez
          port: metrics
        periodSeconds: 5
        timeoutSeconds: 5
        failureThreshold: {{ divf .Values.probes.startup.seconds 5 | ceil | int }}
      livenessProbe:
        httpGet:
          path: /livez
          port: metrics
        {{- toYaml .Values.probes.liveness | nindent 8 }}
      readinessProbe:
        httpGet:
          path: /readyz
          port: metrics
        {{- toYaml .Values.probes.readiness | nindent 8 }}
      {{- end }}
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "spark-sink.containerSecurity" . | nindent 8 }}
      volumeMounts:
        {{- include "spark-sink.mounts" . | nindent 8 }}
  volumes:
    {{- include "spark-sink.volumes" . | nindent 4 }}
  {{- with include "spark-sink.placement" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- end -}}
