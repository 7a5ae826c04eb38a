/* Licences of the libraries in this file: NOTICE.txt */
import{l as a,m as b,n as c,o as d}from"./chunk-JAYR6QCS.js";import"./chunk-5HAC3AHZ.js";import"./chunk-R663BL4I.js";import"./chunk-G2TCPSGF.js";import"./chunk-OOJM4CTU.js";export{c as Measure,b as NoResults,d as default,a as outcome};
